import { describe, expect, it } from "vitest";
import {
  defaultRetries,
  isThrottle,
  LONGEST_WAIT_MS,
  retriesText,
  retryDefaults,
  throttleBackoffMs,
  retryAfterMs,
  retryWaitMs,
} from "../../src/domain/retry.ts";
import { words } from "../support/words.ts";

const ALMOST_ONE = 1 - Number.EPSILON;
const HOUR_MS = 3_600_000;

describe("retryWaitMs", () => {
  it.each([
    [1, 0],
    [2, 2_000],
    [3, 4_000],
    [4, 8_000],
    [5, 16_000],
    [6, 32_000],
    [7, 64_000],
    [14, 8_192_000],
    [15, 16_384_000],
    [16, 6 * HOUR_MS],
    [17, 6 * HOUR_MS],
    [20, 6 * HOUR_MS],
    [2_000, 6 * HOUR_MS],
  ])("waits as scheduled before retry %i: %i ms", (retry, waitMs) => {
    expect(retryWaitMs(retry, 0)).toBe(waitMs);
  });

  it("is never shorter than scheduled, at most 10 % longer, and at most six hours", () => {
    for (let retry = 1; retry <= 25; retry += 1) {
      const scheduledMs = retryWaitMs(retry, 0);
      for (const fraction of [0, 0.001, 0.25, 0.5, 0.999, ALMOST_ONE]) {
        const waitMs = retryWaitMs(retry, fraction);
        expect(waitMs).toBeGreaterThanOrEqual(scheduledMs);
        expect(waitMs).toBeLessThanOrEqual(Math.min(scheduledMs * 1.1, LONGEST_WAIT_MS));
        expect(Number.isInteger(waitMs)).toBe(true);
      }
    }
  });

  it("keeps the waits of the specification within 50 ms", () => {
    for (const retry of [1, 2, 3, 4, 5]) {
      expect(retryWaitMs(retry, ALMOST_ONE) - retryWaitMs(retry, 0)).toBeLessThanOrEqual(50);
    }
    expect(retryWaitMs(1, ALMOST_ONE)).toBe(0);
  });

  it("spreads later waits at random", () => {
    expect(retryWaitMs(8, 0.5)).toBe(128_000 * 1.05);
  });
});

describe("the retries of subscriptions that say nothing else", () => {
  const waits = [0, 5_000, 60_000];

  it.each([
    [{}, { max_retries: 5, retry_schedule: null }],
    [{ retrySchedule: waits }, { max_retries: 3, retry_schedule: waits }],
    [
      { retrySchedule: waits, maxRetries: 8 },
      { max_retries: 8, retry_schedule: waits },
    ],
    [{ maxRetries: 0 }, { max_retries: 0, retry_schedule: null }],
  ])("follow the configuration (%#)", (config, defaults) => {
    expect(retryDefaults(config)).toEqual(defaults);
    expect(defaultRetries({}, defaults)).toBe(defaults.max_retries);
    expect(defaultRetries({ retry_schedule: [1_000] }, defaults)).toBe(1);
  });

  it.each([
    [5, null, "5 retries, the last 30 s after the first attempt"],
    [20, null, "20 retries, the last 1 d 15 h after the first attempt"],
    [1, null, "1 retry at once after the first attempt"],
    [0, null, "no retries"],
    [2, [500], "2 retries, the last 1 s after the first attempt"],
    [4, waits, "4 retries, the last 2 min 5 s after the first attempt"],
    [
      6,
      [0, 5_000, 60_000, 600_000, HOUR_MS, 6 * HOUR_MS],
      "6 retries, the last 7 h 11 min after the first attempt",
    ],
  ])("%i with the waits %j are told as %s", (retries, waitsMs, text) => {
    expect(retriesText(retries, waitsMs)).toBe(text);
  });
});

describe("retryAfterMs", () => {
  const nowMs = Date.parse("2026-11-21T10:00:00Z");

  it.each([
    ["0", 0],
    ["1", 1_000],
    [" 120 ", 120_000],
    ["21600", 6 * HOUR_MS],
    ["21601", 6 * HOUR_MS],
    ["99999999999999999999999", 6 * HOUR_MS],
    ["Sat, 21 Nov 2026 10:00:30 GMT", 30_000],
    ["Saturday, 21-Nov-26 10:00:30 GMT", 30_000],
    ["Sat Nov 21 10:00:30 2026", 30_000],
    ["Sat, 21 Nov 2026 09:00:00 GMT", 0],
    ["Thu, 01 Jan 1970 00:00:00 GMT", 0],
    ["Sun, 22 Nov 2026 10:00:00 GMT", 6 * HOUR_MS],
  ])("%j asks for %i ms", (value, waitMs) => {
    expect(retryAfterMs(value, nowMs)).toBe(waitMs);
  });

  it.each([
    ...words("-1 1.5 1e3 +5 0x10 soon 2026-11-21T10:00:30Z ٣"),
    "",
    "5 s",
    "1, 2",
    "Nov 21 2026",
    "Sat, 99 Nov 2026 10:00:00 GMT",
    "Sat, 21 Abc 2026 10:00:00 GMT",
  ])("%j is ignored", (value) => {
    expect(retryAfterMs(value, nowMs)).toBeUndefined();
  });
});

describe("what throttles a subscription", () => {
  it("is 429, 502, 503 and 504", () => {
    const all = Array.from({ length: 900 }, (_, index) => index + 100);
    expect(all.filter(isThrottle)).toEqual([429, 502, 503, 504]);
  });

  it("never delays a delivery longer than its own schedule", () => {
    for (let failures = 0; failures < 20; failures += 1) {
      expect(throttleBackoffMs(failures + 1)).toBeLessThanOrEqual(retryWaitMs(failures + 1, 0));
    }
  });
});
