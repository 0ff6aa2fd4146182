import { randomBytes } from "node:crypto";

export interface Clock {
  /** Milliseconds since the epoch, by a clock that is set now and then: for times that are stored or shown. */
  now(): number;
  /** Whole milliseconds since some start, by a clock that nobody sets: for durations, and for waits in memory. */
  monotonicMs(): number;
  /** Calls back once after `delayMs`; the answer cancels it. A pending timer does not keep the process alive. */
  setTimer(callback: () => void, delayMs: number): () => void;
}

/** `setTimeout` fires at once for longer delays. A longer wait is cut short, and the caller checks the time again. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => Math.trunc(performance.now()),
  setTimer(callback, delayMs) {
    const timer = setTimeout(callback, Math.min(Math.max(0, delayMs), MAX_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** A clock with a time of day of its own. */
abstract class OtherTimeClock implements Clock {
  protected readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  abstract now(): number;

  monotonicMs(): number {
    return this.clock.monotonicMs();
  }

  setTimer(callback: () => void, delayMs: number): () => void {
    return this.clock.setTimer(callback, delayMs);
  }
}

/** The time of another machine, as it was read last, by the monotonic clock of this one: those who share it agree on what is due. */
export class SharedClock extends OtherTimeClock {
  #aheadMs = this.clock.now() - performance.now();

  /**
   * Takes a reading only where it says something new: an answer that was long on its way may be of any time in between.
   * @param askedMs this process's `performance.now()` before the other machine read its clock, and `answeredMs` after that
   */
  read(otherMs: number, askedMs: number, answeredMs: number): void {
    const isPossible = this.#aheadMs >= otherMs - answeredMs && this.#aheadMs <= otherMs - askedMs;
    if (!isPossible) this.#aheadMs = otherMs - (askedMs + answeredMs) / 2;
  }

  now(): number {
    return Math.trunc(performance.now() + this.#aheadMs);
  }
}

/** Blocks the thread for so long. */
export function blockThread(forMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, forMs);
}

/** Clocks are corrected by less than this all the time. */
const CLOCK_STEP_MS = 1_000;

/** The clock was set: `byMs` is negative where it was set back, and `nowMs` is the time since then. */
export interface ClockStep {
  readonly byMs: number;
  readonly nowMs: number;
}

/** Notices that the time of day was set at the first reading after that, before anybody uses the new time. */
export class WatchedClock extends OtherTimeClock {
  #offsetMs = this.#offsetNow();
  #onStep: ((step: ClockStep) => void) | undefined;

  /** Takes the time as it is now for right, whatever it was before. */
  settle(): void {
    this.#offsetMs = this.#offsetNow();
  }

  #offsetNow(): number {
    return this.clock.now() - this.clock.monotonicMs();
  }

  /** @param onStep called inside of the reading */
  watch(onStep: (step: ClockStep) => void): void {
    this.#onStep = onStep;
  }

  now(): number {
    const nowMs = this.clock.now();
    const offsetMs = nowMs - this.clock.monotonicMs();
    const byMs = offsetMs - this.#offsetMs;
    if (Math.abs(byMs) < CLOCK_STEP_MS || this.#onStep === undefined) return nowMs;
    this.#offsetMs = offsetMs;
    this.#onStep({ byMs, nowMs });
    return nowMs;
  }
}

/** How far the monotonic clock is ahead of the time of day: added to a stored time, it is the time to wait for. */
export function aheadMs(clock: Clock): number {
  return clock.monotonicMs() - clock.now();
}

/** ISO 8601 UTC with milliseconds and `Z`, the one form in which times leave the service. */
export function toIso(epochMs: number): string {
  if (epochMs !== last.epochMs) last = { epochMs, iso: new Date(epochMs).toISOString() };
  return last.iso;
}

/** Events of a batch have one time, of which the text takes half a microsecond: a twentieth of what an event of a batch takes. */
let last = { epochMs: 0, iso: "1970-01-01T00:00:00.000Z" };

/** A time in the name of a file. */
export function fileTimestamp(epochMs: number): string {
  return toIso(epochMs).replaceAll(/[-:.]/g, "");
}

/** Resolves when the time is over, or once the signal is aborted; it never rejects. */
export function sleep(clock: Pick<Clock, "setTimer">, delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.setTimer(end, delayMs);
    signal?.addEventListener("abort", end);
  });
}

/** One timer for the earliest of several times of the monotonic clock. */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #atMs = Infinity;
  #cancel: () => void = () => {};

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Rings at that time, at once if it has passed, unless it rings before that anyway. */
  at(atMs: number): void {
    const delayMs = atMs - this.#clock.monotonicMs();
    if (delayMs <= 0) return this.#ring();
    if (atMs >= this.#atMs) return;
    this.#cancel();
    this.#atMs = atMs;
    this.#cancel = this.#clock.setTimer(() => {
      this.#atMs = Infinity;
      this.#ring();
    }, delayMs);
  }

  clear(): void {
    this.#cancel();
    this.#atMs = Infinity;
  }
}

export interface Random {
  /** Cryptographically strong bytes. */
  bytes(count: number): Uint8Array;
  /** Answers a number in [0, 1); for jitter, never for secrets. */
  fraction(): number;
}

export const systemRandom: Random = {
  bytes: (count) => randomBytes(count),
  fraction: () => Math.random(),
};
