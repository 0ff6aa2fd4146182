import type { Clock } from "./clock.ts";

/** How long some work for a caller may take. Its signal interrupts what is waited for, also when the caller has gone. */
export class TimeLimit {
  readonly signal: AbortSignal;
  readonly #clock: Clock;
  readonly #endMs: number;
  readonly #gone: AbortSignal | undefined;
  readonly #cancel: () => void;

  /**
   * @param reason of the signal when the time is over
   * @param gone aborted when nobody wants the work any more
   */
  constructor(clock: Clock, limitMs: number, reason: Error, gone?: AbortSignal) {
    const over = new AbortController();
    this.signal = gone === undefined ? over.signal : AbortSignal.any([gone, over.signal]);
    this.#clock = clock;
    this.#endMs = clock.monotonicMs() + limitMs;
    this.#gone = gone;
    this.#cancel = clock.setTimer(() => over.abort(reason), limitMs);
  }

  /** Whether the time is over or the caller has gone. A busy thread comes late to its timers. */
  get isOver(): boolean {
    return this.signal.aborted || this.#clock.monotonicMs() >= this.#endMs;
  }

  throwIfGone(): void {
    this.#gone?.throwIfAborted();
  }

  /** The outcome of work that heeds the signal, or `undefined` where that has interrupted it. */
  async unlessOver<T>(work: Promise<T>): Promise<T | undefined> {
    try {
      return await work;
    } catch (error) {
      if (this.signal.aborted && error === this.signal.reason) return undefined;
      throw error;
    }
  }

  /** Frees the timer once the work is done. */
  end(): void {
    this.#cancel();
  }
}
