const LONGEST_WAIT_MS = 1_000;
const SLOWER_EACH_LOOK = 1.6;

/** How long to wait after a look when the wait before it was so long: soon about once a second. */
export function longerWaitMs(waitMs: number): number {
  return Math.min(LONGEST_WAIT_MS, waitMs * SLOWER_EACH_LOOK);
}
