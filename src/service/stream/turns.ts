import { Yielder } from "../../runtime/yielding.ts";

/** How long readers make and encode their messages before they rest. */
const SLICE_MS = 1;

/**
 * The turns of all readers of streams. After each slice comes a rest of its length at least, also where one step was longer than
 * a slice: so half of the thread's time is never theirs, however many they are.
 */
export const streamTurns = new Yielder(
  () => performance.now(),
  (callback) => {
    const startedMs = performance.now();
    // What a slice does comes before the next immediate.
    setImmediate(() => setTimeout(callback, Math.max(SLICE_MS, performance.now() - startedMs)));
  },
  SLICE_MS,
);
