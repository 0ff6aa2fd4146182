import { describe, expect, it } from "vitest";
import { DELIVERY_STATUSES, statusesBefore } from "../../../src/domain/delivery.ts";
import { checkRetry, checkSkip, type RequestedDelivery } from "../../../src/store/rules/requests.ts";

const DELIVERY: RequestedDelivery = {
  rowid: 7,
  status: "pending",
  subscription: "welcome",
  last_error: null,
  isSubscriptionDeleted: false,
};
const nothing = () => undefined;
const inOrder = () => ({ id: 3, hasFailed: false, isOfKey: false });
const failedInOrder = () => ({ id: 3, hasFailed: true, isOfKey: false });
const ofKey = () => ({ id: 3, hasFailed: true, isOfKey: true });

describe("a retry", () => {
  it.each(DELIVERY_STATUSES)("of one that is %s is made where the table of states has that", (status) => {
    const retry = () => checkRetry({ ...DELIVERY, status }, nothing);
    if (statusesBefore("retry requested").has(status)) retry();
    else expect(retry).toThrow(expect.objectContaining({ code: "conflict", details: { rowid: 7, status } }));
  });

  it.each([
    [{ status: "failed", isSubscriptionDeleted: true }, nothing, "its subscription welcome was deleted"],
    [{ status: "held" }, inOrder, "it is held; reactivate its subscription first"],
    [{ status: "delivering" }, inOrder, "it is delivering; it is on its way already"],
    [{}, nothing, "it is pending; it is on its way already"],
    [{}, inOrder, "its subscription is ordered, and delivery 3 goes before it"],
    [{}, failedInOrder, "its subscription is ordered, and delivery 3 has failed so far and goes before it"],
    [{}, ofKey, "is ordered by key, and delivery 3 of the same key goes before it"],
  ] as const)("is refused for %o in words", (given, before, words) => {
    expect(() => checkRetry({ ...DELIVERY, ...given }, before)).toThrow(words);
  });
});

describe("a skip", () => {
  it.each(DELIVERY_STATUSES)(
    "of one that has failed and is %s is made where the table of states has that",
    (status) => {
      const skip = () => checkSkip({ ...DELIVERY, status, last_error: "HTTP 500" }, nothing);
      if (statusesBefore("skipped").has(status)) skip();
      else expect(skip).toThrow(expect.objectContaining({ code: "conflict" }));
    },
  );

  it.each([
    [{ status: "delivering" }, nothing, "an attempt of it is under way; wait for its result first"],
    [{ status: "delivered" }, nothing, "it is delivered, so nothing of it is left to be sent"],
    [{}, nothing, "no attempt of it has failed so far; only one that failed can be skipped"],
    [
      {},
      failedInOrder,
      "no attempt of it has failed so far; its subscription is ordered, and delivery 3 has failed",
    ],
  ] as const)("is refused for %o in words", (given, before, words) => {
    expect(() => checkSkip({ ...DELIVERY, ...given }, before)).toThrow(words);
  });
});
