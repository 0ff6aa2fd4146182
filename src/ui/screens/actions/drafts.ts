/** Schemas that somebody began to write, by action: they stay while the page is open, also where it goes elsewhere. */
const drafts = new Map<string, string>();

export const draftOf = (action: string): string | undefined => drafts.get(action);

export function keepDraft(action: string, text: string): void {
  drafts.set(action, text);
}

export function dropDraft(action: string): void {
  drafts.delete(action);
}

/** Why a text is no schema, or `undefined` where the server can be asked. */
export function whyUnreadable(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? undefined : "A schema is a JSON object.";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
