/** Part of the time waited so far after which `until` looks again: often at first, seldom in a long wait. */
const PART = 0.1;
const LONGEST_PAUSE_MS = 10;

/**
 * Waits for something that real sockets or another thread bring about. Looking itself takes processor time, most of all
 * where it is a request. A condition that never comes fails with its name after `withinMs`.
 */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = 50_000,
): Promise<void> {
  const startMs = performance.now();
  while (!(await holds())) {
    const waitedMs = performance.now() - startMs;
    if (waitedMs > withinMs) throw new Error(`Waited ${withinMs} ms for: ${what}`);
    const pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(1, waitedMs * PART));
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
