import type { Clock } from "../../src/runtime/clock.ts";

interface Timer {
  readonly callback: () => void;
  readonly atMs: number;
  readonly order: number;
}

/**
 * A clock that stands still until told. Timers fire in the order of their times, each with `now()` at its own time. The time of day
 * can be set apart from the time that passes.
 */
export class ManualClock implements Clock {
  #monotonicMs = 5_000_000;
  /** From the monotonic time to the time of day. */
  #offsetMs: number;
  #count = 0;
  readonly #timers = new Set<Timer>();

  constructor(startMs = Date.parse("2026-01-01T00:00:00.000Z")) {
    this.#offsetMs = startMs - this.#monotonicMs;
  }

  now(): number {
    return this.#monotonicMs + this.#offsetMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  setTimer(callback: () => void, delayMs: number): () => void {
    const timer = { callback, atMs: this.#monotonicMs + Math.max(0, delayMs), order: this.#count };
    this.#count += 1;
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Timers that have not fired. */
  get pending(): number {
    return this.#timers.size;
  }

  /** When the next timer fires, in milliseconds since the epoch. */
  get nextTimerMs(): number | undefined {
    const next = this.#next(Infinity);
    return next && next.atMs + this.#offsetMs;
  }

  /** Moves on, firing what comes due. After each timer, what it set off gets a few turns of the event loop. */
  async advance(byMs: number): Promise<void> {
    const untilMs = this.#monotonicMs + byMs;
    await turns();
    for (let timer = this.#next(untilMs); timer !== undefined; timer = this.#next(untilMs)) {
      this.#timers.delete(timer);
      this.#monotonicMs = Math.max(this.#monotonicMs, timer.atMs);
      timer.callback();
      await turns();
    }
    this.#monotonicMs = untilMs;
    await turns();
  }

  /** Sets the time of day, as a system's clock is set. No time passes. */
  set(nowMs: number): void {
    this.#offsetMs = nowMs - this.#monotonicMs;
  }

  /** Lets time pass without firing anything, as on a machine that is too busy. */
  pass(byMs: number): void {
    this.#monotonicMs += byMs;
  }

  #next(untilMs: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.atMs > untilMs) continue;
      if (
        next === undefined ||
        timer.atMs < next.atMs ||
        (timer.atMs === next.atMs && timer.order < next.order)
      ) {
        next = timer;
      }
    }
    return next;
  }
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
