import { expect, it } from "vitest";
import { replayCapacity, replayCounts } from "../../src/store/sql/history/replays.ts";

it.each([
  ["running", null, 4, { total: null, skipped: 0 }],
  ["running", 9, 4, { total: 9, skipped: 0 }],
  ["done", 9, 4, { total: 9, skipped: 5 }],
  ["done", 9, 11, { total: 11, skipped: 0 }],
  ["cancelled", 9, 4, { total: 9, skipped: 0 }],
] as const)("of one that is %s, counted as %s, with %s sent is shown %o", (status, total, queued, counts) => {
  expect(replayCounts({ status, total, queued })).toEqual(counts);
});

it.each([
  [{ due: 0, unfinished: 0 }, "all", 8],
  [{ due: 25, unfinished: 25 }, "all", 8],
  [{ due: 26, unfinished: 26 }, "all", 0],
  [{ due: 0, unfinished: 996 }, "all", 4],
  [{ due: 0, unfinished: 1_000 }, "missed", 0],
  [{ due: 1, unfinished: 1_001 }, "missed", 0],
  [{ due: 0, unfinished: 1_000 }, "waiting", 8],
] as const)("beside %o a step of %s makes %i due", (queued, selection, capacity) => {
  const limits = { maxQueued: 8, maxDue: 50, maxUnfinished: 1_000 };
  expect(replayCapacity(queued, selection, limits)).toBe(capacity);
});
