import type { Clock } from "../runtime/clock.ts";

interface Round {
  readonly atMs: number;
  readonly open: Set<() => void>;
  cancel: () => void;
}

/** Deadlines that are all the same time away; those that begin in the same millisecond share a timer. */
export class Deadlines {
  readonly #clock: Clock;
  readonly #afterMs: number;
  #latest: Round | undefined;

  constructor(clock: Clock, afterMs: number) {
    this.#clock = clock;
    this.#afterMs = afterMs;
  }

  /** Calls back when the time is over; the answer cancels it. */
  begin(expire: () => void): () => void {
    const nowMs = this.#clock.now();
    const round = this.#latest?.atMs === nowMs ? this.#latest : this.#round(nowMs);
    round.open.add(expire);
    return () => {
      round.open.delete(expire);
      if (round.open.size > 0) return;
      round.cancel();
      if (this.#latest === round) this.#latest = undefined;
    };
  }

  #round(atMs: number): Round {
    const round: Round = { atMs, open: new Set(), cancel: () => {} };
    round.cancel = this.#clock.setTimer(() => {
      if (this.#latest === round) this.#latest = undefined;
      for (const expire of round.open) expire();
    }, this.#afterMs);
    this.#latest = round;
    return round;
  }
}
