import { setTimeout as sleep } from "node:timers/promises";

/** Polls soon at first, then about once a second. */
const FIRST_POLL_MS = 25;
const MAX_POLL_MS = 1_000;
const POLL_BACKOFF = 1.6;

export interface Polled<T> {
  /** What was read last. */
  readonly last: T;
  readonly end: "over" | "timeout" | "interrupted";
}

interface PollOptions<T> {
  /** Ends it. */
  readonly signal: AbortSignal;
  /** As long as it takes, if there is none. */
  readonly timeoutMs?: number | undefined;
  /** Called before each wait. */
  readonly waiting: (last: T) => void;
}

/** Reads again and again until it is over. */
export async function poll<T>(
  read: () => Promise<T>,
  isOver: (last: T) => boolean,
  { signal, timeoutMs = Infinity, waiting }: PollOptions<T>,
): Promise<Polled<T>> {
  const endsAtMs = performance.now() + timeoutMs;
  for (let waitMs = FIRST_POLL_MS; ; waitMs = Math.min(MAX_POLL_MS, waitMs * POLL_BACKOFF)) {
    const last = await read();
    if (isOver(last)) return { last, end: "over" };
    const remainingMs = endsAtMs - performance.now();
    if (remainingMs <= 0) return { last, end: "timeout" };
    waiting(last);
    const isInterrupted = await sleep(Math.min(waitMs, remainingMs), false, { signal }).catch(() => true);
    if (isInterrupted) return { last, end: "interrupted" };
  }
}
