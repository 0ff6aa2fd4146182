import { runInNewContext } from "node:vm";
import type { Clock } from "./clock.ts";

export interface RestParts {
  readonly clock: Pick<Clock, "setTimer">;
  /** CPU time used so far, in milliseconds. */
  readonly cpuMs: () => number;
  /**
   * Called once after each stretch of work, when next to nothing was done for `QUIET_MS`, and every `LONGEST_MS` of work that
   * leaves time for it.
   */
  readonly tidy: () => void;
}

const QUIET_MS = 5_000;
/** Looking around and timers cost less; a few requests a second more. */
const BUSY_SHARE = 0.02;
/**
 * Work that goes on but is light makes so little garbage that V8 lets it lie for an hour: some 200 bytes for each delivery,
 * which come to 100 MB. With more work V8 collects by itself.
 */
const LONGEST_MS = 5 * 60_000;
const LIGHT_SHARE = 0.5;

/**
 * Tells when work has come to rest, by the CPU time it used: what is kept only to work fast, such as free heap, may then
 * be given back. Light work that never rests is tidied up after from time to time. Answers the way to end it.
 */
export function watchRest({ clock, cpuMs, tidy }: RestParts): () => void {
  let usedMs = cpuMs();
  let sinceMs = 0;
  // A start is a stretch of work as well.
  let hasWorked = true;
  let cancel: () => void;
  const look = (): void => {
    const nowMs = cpuMs();
    const isBusy = nowMs - usedMs > QUIET_MS * BUSY_SHARE;
    const isLight = nowMs - usedMs <= QUIET_MS * LIGHT_SHARE;
    hasWorked ||= isBusy;
    sinceMs += QUIET_MS;
    if (hasWorked && (!isBusy || (isLight && sinceMs >= LONGEST_MS))) {
      hasWorked = false;
      sinceMs = 0;
      tidy();
    }
    // What tidying took is no work.
    usedMs = cpuMs();
    cancel = clock.setTimer(look, QUIET_MS);
  };
  cancel = clock.setTimer(look, QUIET_MS);
  return () => cancel();
}

/** What this thread has used. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/**
 * Gives the heap's free pages back to the system. Stops the thread for some 50 ms, so only for one at rest; does nothing
 * unless Node or, since then, V8 was given the option for it, as `server-heap.ts` has it.
 */
export function shrinkHeap(): void {
  // A thread from before V8 was given the option has no such function; a new context has.
  const collect = globalThis.gc ?? (runInNewContext("globalThis.gc") as typeof globalThis.gc);
  collect?.({ type: "major", execution: "sync", flavor: "last-resort" });
}
