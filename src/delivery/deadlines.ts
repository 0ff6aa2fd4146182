import type { Clock } from "../runtime/clock.ts";

interface Round {
  readonly open: Set<() => void>;
  readonly beganMs: number;
  cancel: () => void;
  isOver: boolean;
}

/** Deadlines of which most are as far away as others; those that begin in the same millisecond share a timer. */
export class Deadlines {
  readonly #clock: Clock;
  /** The round that began last of each duration. */
  readonly #latest = new Map<number, Round>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls back when the time is over; the answer cancels it. */
  begin(afterMs: number, expire: () => void): () => void {
    const nowMs = this.#clock.now();
    const latest = this.#latest.get(afterMs);
    const round = latest?.beganMs === nowMs && !latest.isOver ? latest : this.#round(afterMs, nowMs);
    round.open.add(expire);
    return () => {
      round.open.delete(expire);
      if (round.open.size > 0) return;
      round.cancel();
      round.isOver = true;
    };
  }

  #round(afterMs: number, beganMs: number): Round {
    const round: Round = { beganMs, open: new Set(), cancel: () => {}, isOver: false };
    round.cancel = this.#clock.setTimer(() => {
      round.isOver = true;
      for (const expire of round.open) expire();
    }, afterMs);
    this.#latest.set(afterMs, round);
    return round;
  }
}
