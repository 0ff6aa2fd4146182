import { PerformanceObserver } from "node:perf_hooks";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Clock } from "./clock.ts";

/**
 * The heap, and what lies outside it such as request bodies, grows by half of what is in use before it is collected. With
 * these and a bounded young heap a server that takes batches holds 180 to 260 MB at most, and 320 to 360 without.
 */
const OPTIONS = ["--heap-growing-percent=50", "--external-memory-accounted-in-global-limit"];
/** The largest heap for short-lived objects of a server. It grows to 64 MiB by itself. */
const YOUNG_BYTES = 24 * 1024 * 1024;

/**
 * Bounds the memory of this process as a server's. To be called as soon as the server has started: earlier, V8 would refuse cached
 * code that was compiled under other options, and later, a backlog would have filled a heap that is larger.
 */
export function boundServerHeap(): void {
  boundHeap();
  // With it an idle server can give free memory back.
  setFlagsFromString("--expose-gc");
}

/**
 * Bounds the memory of a process that works for long. V8 takes an option for the size of the young heap only when a process
 * starts, but one for its growth at any time. It also shrinks an idle one, which has to grow again with the next load.
 * @param youngBytes the largest heap for short-lived objects
 */
export function boundHeap(youngBytes = YOUNG_BYTES): void {
  for (const option of OPTIONS) setFlagsFromString(option);
  let factor = 2;
  const collected = new PerformanceObserver(() => {
    const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === "new_space");
    const wanted = young === undefined || young.space_size < youngBytes ? 2 : 1;
    if (wanted !== factor) setFlagsFromString(`--semi-space-growth-factor=${wanted}`);
    factor = wanted;
  });
  collected.observe({ entryTypes: ["gc"] });
}

const CHECK_EVERY_MS = 5_000;
/** Below this share of the CPU there are only timers and a few requests a second. */
const IDLE_SHARE = 0.02;
/** V8 leaves the little garbage of light work for an hour, which comes to 100 MB. With more work it collects by itself. */
const LONGEST_MS = 5 * 60_000;
const LIGHT_SHARE = 0.5;

/**
 * Calls `compact` when a thread that has worked becomes idle, by its CPU time: free heap can then be given back. Light work
 * that never ends is interrupted for it from time to time.
 * @param cpuMs CPU time used so far, in milliseconds
 * @returns ends it
 */
export function onIdle(clock: Pick<Clock, "setTimer">, cpuMs: () => number, compact: () => void): () => void {
  let usedMs = cpuMs();
  let sinceMs = 0;
  // A start is work as well.
  let hasWorked = true;
  let cancel: () => void;
  const check = (): void => {
    const worked = (cpuMs() - usedMs) / CHECK_EVERY_MS;
    const isIdle = worked <= IDLE_SHARE;
    hasWorked ||= !isIdle;
    sinceMs += CHECK_EVERY_MS;
    if (hasWorked && (isIdle || (worked <= LIGHT_SHARE && sinceMs >= LONGEST_MS))) {
      hasWorked = false;
      sinceMs = 0;
      compact();
    }
    // Compacting is not counted as work.
    usedMs = cpuMs();
    cancel = clock.setTimer(check, CHECK_EVERY_MS);
  };
  cancel = clock.setTimer(check, CHECK_EVERY_MS);
  return () => cancel();
}

/** CPU time that this thread has used. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** Gives the heap's free pages back to the system, after `boundServerHeap`. Stops the thread for 50 ms, so only for an idle one. */
export function compactHeap(): void {
  // A thread from before V8 was given the option has no such function; a new context has.
  const collect = globalThis.gc ?? (runInNewContext("globalThis.gc") as typeof globalThis.gc);
  collect?.({ type: "major", execution: "sync", flavor: "last-resort" });
}
