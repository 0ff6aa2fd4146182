/** A table of texts without spaces. */
export function words(text: string): string[] {
  return text.trim().split(/\s+/);
}
