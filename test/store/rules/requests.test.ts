import { describe, expect, it } from "vitest";
import { statusesBefore } from "../../../src/domain/delivery.ts";
import { DELIVERY_STATUSES } from "../../../src/model/delivery.ts";
import {
  checkReplayStart,
  checkRetry,
  checkSkip,
  isToBeCancelled,
  replayCapacity,
  replayCounts,
  type RequestedDelivery,
} from "../../../src/store/rules/requests.ts";

const DELIVERY: RequestedDelivery = {
  rowid: 7,
  status: "pending",
  subscription: "welcome",
  last_error: null,
  isSubscriptionDeleted: false,
  isBehind: false,
};
const FAILED = { last_error: "HTTP 500" };

describe.each([
  ["retry", checkRetry, "retry requested"],
  ["skip", checkSkip, "skipped"],
] as const)("a %s", (_, check, cause) => {
  it.each(DELIVERY_STATUSES)("of one that is %s is made where the table of states has that", (status) => {
    const ask = () => check({ ...DELIVERY, ...FAILED, status });
    if (statusesBefore(cause).has(status)) ask();
    else expect(ask).toThrow(expect.objectContaining({ code: "conflict", details: { rowid: 7, status } }));
  });
});

const PLAN = { subscription: 7, action: "order.created" };

it("a replay starts for the action that it was planned for, beside no other one", () => {
  checkReplayStart(PLAN, "order.created", undefined);
  expect(() => checkReplayStart(PLAN, "order.paid", undefined)).toThrow("was just bound to another action");
  expect(() => checkReplayStart(PLAN, "order.created", { rowid: 3 })).toThrow(
    "Replay 3 of subscription 7 still runs",
  );
});

it("a replay is cancelled while it runs, and once", () => {
  expect(isToBeCancelled({ rowid: 3, status: "running" })).toBe(true);
  expect(isToBeCancelled({ rowid: 3, status: "cancelled" })).toBe(false);
  expect(() => isToBeCancelled({ rowid: 3, status: "done" })).toThrow("it is done already");
});

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
  [{ due: 0, unfinished: 1_000 }, "waiting", 8],
] as const)("beside %o a step of %s makes %i due", (queued, selection, capacity) => {
  const limits = { maxQueued: 8, maxDue: 50, maxUnfinished: 1_000 };
  expect(replayCapacity(queued, selection, limits)).toBe(capacity);
});
