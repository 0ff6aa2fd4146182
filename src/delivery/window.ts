/**
 * How many attempts a subscription may have under way of which nothing is known. One tells as much as many, and when many
 * handlers hang at a start, each takes one place.
 */
export const FIRST_WINDOW = 1;

/** After an answer, whatever it says: the handler is there. It doubles in the time of one answer, as TCP begins. */
export function grown(window: number, most: number): number {
  return Math.min(most, window + 1);
}

/** After an attempt that got no answer. */
export function shrunk(window: number): number {
  return Math.max(1, Math.floor(window / 2));
}
