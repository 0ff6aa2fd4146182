import type { Clock } from "../runtime/clock.ts";

interface Round {
  readonly open: Set<() => void>;
  readonly beganMs: number;
  cancel: () => void;
}

/** Deadlines of which most are as far away as others; those that begin in the same millisecond share a timer. */
export class Deadlines {
  readonly #clock: Clock;
  /** The round that began last of each duration; gone when none of it is open. */
  readonly #latest = new Map<number, Round>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls back when the time is over; the answer cancels it. */
  begin(afterMs: number, expire: () => void): () => void {
    const nowMs = this.#clock.now();
    const latest = this.#latest.get(afterMs);
    const round = latest?.beganMs === nowMs ? latest : this.#round(afterMs, nowMs);
    round.open.add(expire);
    return () => {
      round.open.delete(expire);
      if (round.open.size > 0) return;
      round.cancel();
      this.#forget(afterMs, round);
    };
  }

  #round(afterMs: number, beganMs: number): Round {
    const round: Round = { beganMs, open: new Set(), cancel: () => {} };
    round.cancel = this.#clock.setTimer(() => {
      this.#forget(afterMs, round);
      for (const expire of round.open) expire();
    }, afterMs);
    this.#latest.set(afterMs, round);
    return round;
  }

  #forget(afterMs: number, round: Round): void {
    if (this.#latest.get(afterMs) === round) this.#latest.delete(afterMs);
  }
}
