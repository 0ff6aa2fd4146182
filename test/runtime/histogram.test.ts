import { expect, test } from "vitest";
import { Histogram } from "../../src/metrics/counters.ts";

test("a value is counted in the first bucket whose bound it does not pass", () => {
  const histogram = new Histogram([1, 5, 10]);
  for (const value of [0, 1, 1.5, 5, 9, 10, 11, 1_000]) histogram.observe(value);
  expect([...histogram.counts]).toEqual([2, 2, 2, 2]);
  expect(histogram.sum).toBe(1_037.5);
});
