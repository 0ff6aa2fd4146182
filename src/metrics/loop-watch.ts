import { monitorEventLoopDelay } from "node:perf_hooks";

/** How late the event loop of the thread that answers and sends was, over the last stretch of time. */
export interface LoopDelays {
  readonly medianSeconds: number;
  readonly p99Seconds: number;
  readonly maxSeconds: number;
}

const RESOLUTION_MS = 10;
/** A stretch lasts this long at least, so that a second scraper does not cut the first one's short. */
const STRETCH_MS = 10_000;

/** Watches this thread's event loop from `start` to `stop`. */
export class LoopWatch {
  #monitor: ReturnType<typeof monitorEventLoopDelay> | undefined;
  #sinceMs = 0;
  #last: LoopDelays | undefined;

  start(nowMs: number): void {
    this.#monitor ??= monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    this.#monitor.enable();
    this.#sinceMs = nowMs;
  }

  stop(): void {
    this.#monitor?.disable();
    this.#monitor = undefined;
  }

  /** Of the last whole stretch, or of the time since the start; `undefined` when not watching. */
  read(nowMs: number): LoopDelays | undefined {
    const monitor = this.#monitor;
    if (monitor === undefined) return undefined;
    const gone = nowMs - this.#sinceMs;
    if (this.#last !== undefined && gone >= 0 && gone < STRETCH_MS) return this.#last;
    const delays = {
      medianSeconds: secondsLate(monitor.percentile(50)),
      p99Seconds: secondsLate(monitor.percentile(99)),
      maxSeconds: secondsLate(monitor.max),
    };
    if (gone >= 0 && gone < STRETCH_MS) return delays;
    monitor.reset();
    this.#sinceMs = nowMs;
    this.#last = delays;
    return delays;
  }
}

/** What is measured is the time between two ticks, of which `RESOLUTION_MS` is meant to be. */
function secondsLate(nanoseconds: number): number {
  return Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1_000);
}
