import { expect, it } from "vitest";
import { type HandlerHealth, healthAfter } from "../../../src/store/rules/finish.ts";

// The stories of deliveries show when a subscription is deactivated. Here is what these do not tell.

const NOW = 1_000_000;
const HEALTHY: HandlerHealth = {
  isActive: true,
  disabledReason: null,
  failingSinceMs: null,
  lastFailureMs: null,
  failingTotalMs: 0,
  slowedUntilMs: null,
};
const FAILING: HandlerHealth = { ...HEALTHY, failingSinceMs: 100, lastFailureMs: 900, failingTotalMs: 800 };
const LATER: HandlerHealth = { ...HEALTHY, failingSinceMs: NOW + 99, lastFailureMs: NOW + 99 };
const PAUSED: HandlerHealth = { ...HEALTHY, isActive: false };
const SLOWED: HandlerHealth = { ...HEALTHY, slowedUntilMs: NOW + 5 };

type Attempt = Parameters<typeof healthAfter>[1];
const FINE: Attempt = { handler: "accepts", moved: undefined, slowedUntilMs: undefined };
const FAILED: Attempt = {
  handler: "fails",
  moved: { failures: 1, lastError: "HTTP 503", dueMs: NOW },
  slowedUntilMs: undefined,
};

it.each<[string, HandlerHealth, Attempt, Partial<HandlerHealth>]>([
  ["a failure after the clock was set back", LATER, FAILED, { failingSinceMs: NOW, lastFailureMs: NOW }],
  ["a success while it wants a pause", { ...FAILING, slowedUntilMs: NOW + 5 }, FINE, SLOWED],
  ["a success after the pause", { ...HEALTHY, slowedUntilMs: NOW }, FINE, { slowedUntilMs: null }],
  ["a longer pause", SLOWED, { ...FINE, slowedUntilMs: NOW + 9.5 }, { slowedUntilMs: NOW + 10 }],
  ["the failure of another handler", HEALTHY, { ...FAILED, handler: "unknown" }, {}],
  ["a failure while it is paused", PAUSED, { ...FAILED, slowedUntilMs: 9 }, { slowedUntilMs: 9 }],
  ["410 while it is paused", PAUSED, { ...FAILED, handler: "is gone" }, {}],
])("after %s the health of a handler is as before but for that", (_, before, attempt, changed) => {
  expect(healthAfter(before, attempt, NOW, 432_000_000)).toEqual({ ...before, ...changed });
});

it("a success that changes nothing answers the same object, so that nothing is stored", () => {
  for (const before of [HEALTHY, SLOWED]) expect(healthAfter(before, FINE, NOW, undefined)).toBe(before);
});
