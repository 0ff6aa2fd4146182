import { describe, expect, it } from "vitest";
import { bucketOf, BUCKETS, middleOf, Tally, TimeHistogram } from "../../../src/domain/stats/tally.ts";

describe("a histogram of times", () => {
  it("has exact buckets up to 15 ms, and then ones whose middle is at most 6 % off", () => {
    for (let ms = 0; ms < 16; ms += 1) expect(middleOf(bucketOf(ms))).toBe(ms);
    let last = -1;
    for (let ms = 0; ms < 2 ** 31; ms = Math.max(ms + 1, Math.floor(ms * 1.013))) {
      const bucket = bucketOf(ms);
      expect(bucket - last).toBeLessThanOrEqual(1);
      expect(bucket).toBeGreaterThanOrEqual(last);
      last = bucket;
      expect(Math.abs(middleOf(bucket) - ms)).toBeLessThanOrEqual(ms * 0.0625);
    }
    expect(last).toBe(BUCKETS - 1);
    expect([bucketOf(2 ** 31), bucketOf(1e15), bucketOf(-3)]).toEqual([BUCKETS - 1, BUCKETS - 1, 0]);
  });

  it("finds percentiles, and none where there is nothing", () => {
    const histogram = new TimeHistogram();
    expect(histogram.percentile(50)).toBeNull();
    for (let ms = 1; ms <= 10; ms += 1) histogram.add(bucketOf(ms), 1);
    expect([50, 90, 99, 100].map((percent) => histogram.percentile(percent))).toEqual([5, 9, 10, 10]);
  });
});

it("adds up what is counted by the numbers that data folders have, of which 1 means nothing any more", () => {
  const tally = new Tally();
  tally.add({ 0: 10, 1: 1_000, 2: 20, 3: 30, 4: 40 });
  expect(tally.figures()).toMatchObject({ published: 10, delivered: 20, failed_attempts: 30, failed: 40 });
  expect(tally.weight).toBe(100);
});
