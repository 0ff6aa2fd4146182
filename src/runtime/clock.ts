import { randomBytes } from "node:crypto";

/** Where time comes from. Tests hand in one they advance themselves. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls back once after `delayMs`; the answer cancels it. A pending timer does not keep the process alive. */
  setTimer(callback: () => void, delayMs: number): () => void;
}

/** setTimeout fires at once for delays beyond 2^31-1 ms; a longer wait is cut, and the caller looks again. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  setTimer(callback, delayMs) {
    const timer = setTimeout(callback, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** ISO 8601 UTC with milliseconds and `Z`, the one form in which times leave the service. */
export function toIso(epochMs: number): string {
  // Under load dozens of events share a millisecond.
  if (epochMs !== lastIso.epochMs) lastIso = { epochMs, text: new Date(epochMs).toISOString() };
  return lastIso.text;
}

let lastIso = { epochMs: Number.NaN, text: "" };

/** Waits that can be ended before their time, all together. */
export class Sleep {
  readonly #clock: Pick<Clock, "setTimer">;
  readonly #ends = new Set<() => void>();

  constructor(clock: Pick<Clock, "setTimer">) {
    this.#clock = clock;
  }

  /** Resolves when the time is over, or at once when cut. Whoever must not sleep any more looks before it begins. */
  forMs(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        this.#ends.delete(end);
        resolve();
      };
      const cancel = this.#clock.setTimer(end, delayMs);
      this.#ends.add(end);
    });
  }

  /** Ends what sleeps now. */
  cut(): void {
    for (const end of this.#ends) end();
  }
}

const FIRST_MS = 250;
const LONGEST_MS = 5_000;

/** Waits between tries at a store that cannot commit: a quarter of a second, doubling up to five. */
export class Backoff {
  readonly #sleep: Sleep;
  #nextMs = FIRST_MS;

  /** @param sleep a cut of it ends the wait */
  constructor(sleep: Sleep) {
    this.#sleep = sleep;
  }

  /** True from a failure until the next success. */
  get failing(): boolean {
    return this.#nextMs > FIRST_MS;
  }

  /** Resolves when it is time to try again, or at once when cut. */
  wait(): Promise<void> {
    const waitMs = this.#nextMs;
    this.#nextMs = Math.min(LONGEST_MS, waitMs * 2);
    return this.#sleep.forMs(waitMs);
  }

  cut(): void {
    this.#sleep.cut();
  }

  succeeded(): void {
    this.#nextMs = FIRST_MS;
  }
}

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

/** Where chance comes from. Tests hand in a seeded one. */
export interface Random {
  /** Cryptographically strong bytes. */
  bytes(count: number): Uint8Array;
  /** In [0, 1); for jitter, never for secrets. */
  fraction(): number;
}

export const systemRandom: Random = {
  bytes: (count) => randomBytes(count),
  fraction: () => Math.random(),
};
