/** The text of a stretch of bytes. */
export function decoded(bytes: Uint8Array, start: number, end: number): string {
  // What comes from a socket is a Buffer already, and another view on it would cost more than short texts do.
  if (Buffer.isBuffer(bytes)) return bytes.toString("utf8", start, end);
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("utf8");
}

/**
 * Whether a stretch of bytes is that text.
 * @param text of ASCII characters only
 */
export function holdsText(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false;
  for (let at = 0; at < text.length; at++) if (bytes[start + at] !== text.charCodeAt(at)) return false;
  return true;
}
