import { describe, expect, it } from "vitest";
import { DELIVERY_STATUSES, statusesBefore } from "../../../src/domain/delivery.ts";
import { checkRetry, checkSkip, type RequestedDelivery } from "../../../src/store/rules/requests.ts";

const DELIVERY: RequestedDelivery = {
  rowid: 7,
  status: "pending",
  subscription: "welcome",
  last_error: null,
  isSubscriptionDeleted: false,
  isBehind: false,
};
const FAILED = { last_error: "HTTP 500" };
const BEHIND = "its subscription is ordered, and another delivery goes before it";

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

it.each([
  [checkRetry, { status: "failed", isSubscriptionDeleted: true }, "its subscription welcome was deleted"],
  [checkRetry, { status: "held", isBehind: true }, "it is held; reactivate its subscription first"],
  [checkRetry, { status: "delivering" }, "it is delivering; it is on its way already"],
  [checkRetry, {}, "it is pending; it is on its way already"],
  [checkRetry, { isBehind: true }, `it is pending; ${BEHIND}`],
  [checkSkip, { status: "delivering" }, "an attempt of it is under way; wait for its result first"],
  [checkSkip, { status: "delivered" }, "it is delivered, so nothing of it is left to be sent"],
  [checkSkip, {}, "no attempt of it has failed so far; only one that failed can be skipped"],
  [checkSkip, { isBehind: true }, `no attempt of it has failed so far; ${BEHIND}`],
] as const)("%o refuses %o in words", (check, patch, words) => {
  expect(() => check({ ...DELIVERY, ...patch })).toThrow(words);
});
