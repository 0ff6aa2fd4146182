import { expect, test } from "vitest";
import { ErrorSummary } from "../../src/cli/publish/bulk-report.ts";

test("the first five lines of a reason are printed each, the others as a count", () => {
  const tally = new ErrorSummary();
  const told: number[] = [];
  for (let line = 1; line <= 2_000; line += 1) {
    if (tally.add(line, line % 2 === 0 ? "even" : "odd")) told.push(line);
  }
  expect(told).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(tally.remaining(undefined)).toEqual([
    "995 more lines, up to line 1999: odd",
    "995 more lines, up to line 2000: even",
    "--output jsonl shows each refused line.",
  ]);
  expect(tally.remaining("refused.ndjson").at(-1)).toBe("refused.ndjson holds each refused line.");
});

test("five or fewer are not counted again", () => {
  const tally = new ErrorSummary();
  for (let line = 1; line <= 5; line += 1) expect(tally.add(line, "same")).toBe(true);
  expect(tally.remaining(undefined)).toEqual([]);
  tally.add(6, "same");
  expect(tally.remaining(undefined)[0]).toBe("1 more line, up to line 6: same");
});

test("after a thousand reasons each further one is printed, and none is dropped", () => {
  const tally = new ErrorSummary();
  for (let line = 1; line <= 1_000; line += 1) tally.add(line, `reason ${line}`);
  for (let line = 1_001; line <= 1_020; line += 1) expect(tally.add(line, "one too many")).toBe(true);
  for (let line = 1_021; line <= 1_030; line += 1) tally.add(line, "reason 7");
  expect(tally.remaining(undefined)[0]).toBe("6 more lines, up to line 1030: reason 7");
});
