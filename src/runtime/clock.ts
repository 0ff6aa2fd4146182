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
