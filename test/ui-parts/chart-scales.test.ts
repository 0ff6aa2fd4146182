import { expect, test } from "vitest";
import { marksUpTo, timeMarks } from "../../src/ui/parts/chart-scales.ts";

test("an axis begins at 0 and has round marks, no more than there is room for", () => {
  expect(marksUpTo(1, 5)).toEqual([0, 1]);
  expect(marksUpTo(11.4, 6)).toEqual([0, 2, 4, 6, 8, 10]);
  expect(marksUpTo(830, 5)).toEqual([0, 200, 400, 600, 800]);
  expect(marksUpTo(1_000_000, 4)).toEqual([0, 500_000, 1_000_000]);
});

const HOUR_S = 3_600;
/** 2026-01-01T00:20:00Z */
const START = 1_767_226_800;

test("marks of time stand at round times of the reader's day", () => {
  const { marks, apart } = timeMarks(START, START + HOUR_S, 7, 0);
  expect(apart).toBe(600);
  expect(marks).toHaveLength(7);
  expect(marks.every((mark) => mark % 600 === 0)).toBe(true);
  // Midnight in India is at half past the hour in UTC.
  const week = timeMarks(START, START + 7 * 24 * HOUR_S, 7, 5.5 * HOUR_S);
  expect(week.apart).toBe(24 * HOUR_S);
  expect(week.marks.map((mark) => (mark + 5.5 * HOUR_S) % (24 * HOUR_S))).toEqual(Array(7).fill(0));
});
