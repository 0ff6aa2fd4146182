import type { Clock } from "../runtime/clock.ts";

/** The time that is given to end by oneself; it can be shortened, never lengthened. */
export class Grace {
  /** Resolves when it is over. */
  readonly over: Promise<void>;
  readonly #clock: Clock;
  readonly #end: () => void;
  #endsAtMs = Infinity;
  #cancelTimer: () => void = () => {};

  constructor(clock: Clock) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.over = promise;
    this.#clock = clock;
    this.#end = resolve;
  }

  /** Ends it in `graceMs`, or earlier if that was said before. */
  shortenTo(graceMs: number): void {
    const endsAtMs = this.#clock.now() + graceMs;
    if (endsAtMs >= this.#endsAtMs) return;
    this.#endsAtMs = endsAtMs;
    this.#cancelTimer();
    if (graceMs <= 0) this.#end();
    else this.#cancelTimer = this.#clock.setTimer(this.#end, graceMs);
  }

  /** No longer needed: whatever it was given for has ended. Nothing can be said to it afterwards. */
  cancel(): void {
    this.#endsAtMs = -Infinity;
    this.#cancelTimer();
  }
}
