/** What a handler of which nothing is known is sent at once. */
const FIRST = 4;

/** How many attempts a subscription may have under way, to begin with. */
export function firstWindow(most: number): number {
  return Math.min(most, FIRST);
}

/** After an answer, whatever it says: the handler is there. It doubles in the time of one answer, as TCP begins. */
export function grown(window: number, most: number): number {
  return Math.min(most, window + 1);
}

/** After an attempt that got no answer. */
export function shrunk(window: number): number {
  return Math.max(1, Math.floor(window / 2));
}
