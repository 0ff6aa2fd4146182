import { expect, test } from "vitest";
import type { SubscriptionAttempt } from "../../src/domain/delivery.ts";
import { failedShare, percentText } from "../../src/ui/parts/texts.ts";
import { ratesOf } from "../../src/ui/screens/overview/figures.ts";
import { heightOf, tallyOf } from "../../src/ui/screens/subscriptions/attempt-strip.ts";
import { attempt } from "./attempt.ts";

/** Three steps of ten seconds; the third is half over. */
const STATS = {
  range: "1h",
  from: "2026-01-01T00:00:00.000Z",
  to: "2026-01-01T00:00:25.000Z",
  step_ms: 10_000,
  series: { published: [0, 5, 1], delivered: [0, 10, 4], failed_attempts: [0, 2, 0] },
} as const;

test("counts of seconds become rates, and the step under way is left out", () => {
  const seconds = { range: "5m", step_ms: 1_000, to: "2026-01-01T00:00:02.500Z" } as const;
  const { times, delivered, failed } = ratesOf({ ...STATS, ...seconds });
  expect(times).toEqual([1_767_225_600, 1_767_225_601]);
  expect(delivered).toEqual([0, 10]);
  expect(failed).toEqual([0, 2]);
});

test("a burst of some seconds never shows more in a minute than there were", () => {
  const delivered = [0, 312, 0, 0, 0, 0, 0, 0, 4];
  const none = delivered.map(() => 0);
  const series = { delivered, published: none, failed_attempts: none };
  const stats = { ...STATS, series, to: "2026-01-01T00:01:22.000Z" };
  expect(ratesOf(stats).delivered).toEqual([312, 312, 0]);
  expect(ratesOf(stats).times[0]).toBe(1_767_225_650);
});

test("a long step under way counts what there is, and over no less than the time of its rate", () => {
  const series = { delivered: [10, 10, 4], published: [0, 0, 0], failed_attempts: [0, 0, 0] };
  const stats = { ...STATS, series, range: "24h", step_ms: 300_000 } as const;
  expect(ratesOf({ ...stats, to: "2026-01-01T00:12:00.000Z" }).delivered).toEqual([2, 2, 2]);
  expect(ratesOf({ ...stats, to: "2026-01-01T00:10:15.000Z" }).delivered).toEqual([2, 2, 4]);
});

test("a share is never told as all or none where it is not", () => {
  expect(failedShare({ delivered: 0, failed_attempts: 0 })).toBeNull();
  expect(failedShare({ delivered: 9, failed_attempts: 1 })).toBe(10);
  const texts = [0, 0.04, 1.84, 99.97, 100].map(percentText);
  expect(texts).toEqual(["0 %", "< 0.1 %", "1.8 %", "> 99.9 %", "100 %"]);
});

const ended = (part: Partial<SubscriptionAttempt>): SubscriptionAttempt => ({
  delivery_id: 1,
  event_id: 1,
  ...attempt({ outcome: "delivered", status_code: 200, ...part }),
});

test("the last attempts are told in words, those cut short apart", () => {
  const failed = { outcome: "failed" } as const;
  expect(
    tallyOf([
      ended({ duration_ms: 10 }),
      ended({ duration_ms: 30 }),
      ended({ ...failed, status_code: 503, duration_ms: 20 }),
      ended({ ...failed, status_code: null, error_code: "timeout", duration_ms: 2_000 }),
      ended({ ...failed, status_code: 503, duration_ms: 25 }),
      ended({ outcome: "returned", status_code: null, error_code: "interrupted", duration_ms: 9_000 }),
    ]),
  ).toEqual({
    delivered: 2,
    failed: 3,
    returned: 1,
    errors: Object.entries({ "HTTP 503": 2, timeout: 1 }),
    p50: 25,
    p95: 2_000,
  });
  expect(tallyOf([])).toMatchObject({ p50: null, p95: null, errors: [] });
});

test("a bar is higher the longer an attempt took, within its room", () => {
  const heights = [0, 5, 50, 500, 5_000, 60_000, 1_000_000].map(heightOf);
  expect(heights).toEqual(heights.toSorted((one, other) => one - other));
  expect(heights[0]).toBeGreaterThan(0.1);
  expect(heights.at(-1)).toBe(1);
});
