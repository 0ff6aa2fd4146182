import { describe, expect, it } from "vitest";
import { Latencies, median } from "./latencies.ts";

describe("Latencies", () => {
  it("gives exact percentiles, whatever the order and however many there are", () => {
    const latencies = new Latencies();
    // 7 and 5,000 have no common factor, so each of 1 to 5,000 comes once.
    for (let n = 0; n < 5_000; n += 1) latencies.add(((n * 7) % 5_000) + 1);
    expect(latencies.summary()).toEqual({
      count: 5_000,
      p50Ms: 2_500,
      p99Ms: 4_950,
      maxMs: 5_000,
    });
  });

  it("is zero when nothing was measured", () => {
    expect(new Latencies().summary()).toEqual({
      count: 0,
      p50Ms: 0,
      p99Ms: 0,
      maxMs: 0,
    });
  });

  it("reports a single value for every percentile", () => {
    const latencies = new Latencies();
    latencies.add(3);
    expect(latencies.summary()).toMatchObject({ p50Ms: 3, p99Ms: 3, maxMs: 3 });
  });
});

describe("median", () => {
  it.each([
    [[5], 5],
    [[9, 1, 4], 4],
    [[4, 1, 9, 2], 3],
  ])("of %j is %d", (values, expected) => expect(median(values)).toBe(expected));
});
