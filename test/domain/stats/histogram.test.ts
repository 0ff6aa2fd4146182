import { describe, expect, it } from "vitest";
import { bucketOf, BUCKETS, middleOf, TimeHistogram } from "../../../src/domain/stats/histogram.ts";

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

  it("is stored in a few bytes, and what is stored adds up, also one after the other", () => {
    const [one, other, both] = [new TimeHistogram(), new TimeHistogram(), new TimeHistogram()];
    for (const [ms, count] of [
      [0, 1],
      [7, 127],
      [300, 128],
      [90_000, 3_000_000_000],
    ] as const) {
      one.add(bucketOf(ms), count);
      other.add(bucketOf(ms + 5), 5);
      both.add(bucketOf(ms), count);
      both.add(bucketOf(ms + 5), 5);
    }
    expect(one.encoded().length / 2).toBe(2 + 2 + 3 + 6);
    const read = new TimeHistogram();
    read.addEncoded(one.encoded() + other.encoded());
    expect(read.encoded()).toBe(both.encoded());
    expect(new TimeHistogram().encoded()).toBe("");
  });

  it("reads anything, as a file may be damaged", () => {
    const histogram = new TimeHistogram();
    for (const hex of ["ff", "ffff", "0a", "0affffffffffffffffffff01", "e8ff01", "zz"]) {
      histogram.addEncoded(hex);
    }
    expect(histogram.total).toBe(0);
  });
});
