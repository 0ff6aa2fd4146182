import { spanText } from "./formats.ts";

/** The longest wait by doubling, jitter or `Retry-After`. Only a schedule that somebody has set may have longer ones. */
export const LONGEST_WAIT_MS = 6 * 60 * 60 * 1_000;

/** What blocks an order is tried again without end, and a schedule may end with a wait of 0. */
export const LEAST_BLOCKED_WAIT_MS = 1_000;

/** The last wait named in the specification; up to it, jitter stays far below their tolerance of 250 ms. */
const SCHEDULED_WAIT_MS = 16_000;
const SCHEDULED_JITTER_MS = 50;
const JITTER_SHARE = 0.1;

/**
 * How long to wait before a retry: 0, 2, 4, 8, 16 seconds for the first five, then doubling up to six hours.
 * @param retry from 1
 * @param fraction chance in [0, 1): lengthens the wait by at most 10 % (50 ms up to 16 s), never shortens it
 * @param waitsMs a schedule that is set instead, whose last wait goes for all that follow
 */
export function retryWaitMs(retry: number, fraction: number, waitsMs?: readonly number[] | null): number {
  const setMs = waitsMs?.[Math.min(retry, waitsMs.length) - 1];
  if (setMs !== undefined) return withJitter(setMs, fraction);
  if (retry <= 1) return 0;
  return Math.min(LONGEST_WAIT_MS, withJitter(Math.min(LONGEST_WAIT_MS, 1_000 * 2 ** (retry - 1)), fraction));
}

function withJitter(waitMs: number, fraction: number): number {
  const maxMs = waitMs <= SCHEDULED_WAIT_MS ? SCHEDULED_JITTER_MS : Infinity;
  return Math.round(waitMs + fraction * Math.min(maxMs, waitMs * JITTER_SHARE));
}

/** What goes for subscriptions that say nothing else. */
export interface RetryDefaults {
  /** The retries of a subscription that is created without a number of its own. */
  readonly max_retries: number;
  /** The waits before retry 1, 2, … in milliseconds, the last one for all that follow; `null` for those that double. */
  readonly retry_schedule: readonly number[] | null;
}

/** What the specification says. */
export const RETRY_DEFAULTS: RetryDefaults = { max_retries: 5, retry_schedule: null };

/** What a server's configuration makes of them: a schedule alone allows one retry for each of its waits. */
export function retryDefaults(config: {
  readonly maxRetries?: number;
  readonly retrySchedule?: readonly number[];
}): RetryDefaults {
  const waitsMs = config.retrySchedule ?? RETRY_DEFAULTS.retry_schedule;
  return {
    max_retries: config.maxRetries ?? waitsMs?.length ?? RETRY_DEFAULTS.max_retries,
    retry_schedule: waitsMs,
  };
}

/** The retries of a subscription without a number of its own: one for each wait of its schedule, where it has one. */
export function defaultRetries(
  { retry_schedule: waitsMs }: { readonly retry_schedule?: readonly number[] | null },
  defaults = RETRY_DEFAULTS,
): number {
  return waitsMs?.length ?? defaults.max_retries;
}

/** `5 retries, the last 30 s after the first attempt`; the time that the attempts themselves take comes on top. */
export function retriesText(retries: number, waitsMs: readonly number[] | null): string {
  if (retries === 0) return "no retries";
  const lastMs = lastRetryMs(retries, waitsMs);
  const which = retries === 1 ? "1 retry" : `${retries} retries, the last`;
  return `${which} ${lastMs === 0 ? "at once" : spanText(lastMs)} after the first attempt`;
}

/** The time from the first attempt to the last retry. */
function lastRetryMs(retries: number, waitsMs: readonly number[] | null): number {
  let lastMs = 0;
  for (let retry = 1; retry <= retries; retry += 1) lastMs += retryWaitMs(retry, 0, waitsMs);
  return lastMs;
}

/** The three forms of an HTTP date: IMF-fixdate, RFC 850, asctime. `Date.parse` alone would take many more. */
const HTTP_DATES = [
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/,
  /^(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/,
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/,
];

/**
 * The wait a `Retry-After` header asks for, in milliseconds from `nowMs`, at most six hours; 0 for a time gone by.
 * `undefined` for a value that is neither whole seconds nor an HTTP date.
 */
export function retryAfterMs(value: string, nowMs: number): number | undefined {
  const text = value.trim();
  if (/^\d+$/.test(text)) return Math.min(LONGEST_WAIT_MS, Number(text) * 1_000);
  const form = HTTP_DATES.findIndex((pattern) => pattern.test(text));
  if (form === -1) return undefined;
  // asctime names no zone and means UTC.
  const atMs = Date.parse(form === 2 ? `${text} GMT` : text);
  return Number.isNaN(atMs) ? undefined : Math.min(LONGEST_WAIT_MS, Math.max(0, atMs - nowMs));
}

/** Statuses by which a handler, or a proxy before it, says: too much, or not now. */
export function isThrottle(statusCode: number): boolean {
  return [429, 502, 503, 504].includes(statusCode);
}

const LONGEST_GAP_MS = 30_000;

/**
 * The pause for a handler with one attempt at a time that has refused the last `refusals` in a row and has not said how long
 * to wait: 0, 1, 2, 4, 8, 16 s, then 30. It is never longer than the retry schedule, so a single delivery keeps to that.
 */
export function throttleBackoffMs(refusals: number): number {
  return refusals <= 1 ? 0 : Math.min(LONGEST_GAP_MS, 1_000 * 2 ** (refusals - 2));
}
