import { expect, it } from "vitest";
import { replayCapacity } from "../../src/store/sql/history/replays.ts";

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
