/** Schemas that somebody began to write, by action: they stay while the page is open, also where it goes elsewhere. */
const drafts = new Map<string, string>();

export const draftOf = (action: string): string | undefined => drafts.get(action);

export function keepDraft(action: string, text: string): void {
  drafts.set(action, text);
}

export function dropDraft(action: string): void {
  drafts.delete(action);
}
