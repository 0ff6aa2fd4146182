import { expect, it } from "vitest";
import { type HandlerHealth, healthAfter } from "../../../src/store/rules/finish.ts";

const NOW = 1_000_000;
const DAY_MS = 86_400_000;
const HEALTHY: HandlerHealth = {
  isActive: true,
  disabledReason: null,
  failingSinceMs: null,
  lastFailureMs: null,
  failingTotalMs: 0,
  slowedUntilMs: null,
};
const FAILING: HandlerHealth = { ...HEALTHY, failingSinceMs: 100, lastFailureMs: 900, failingTotalMs: 800 };
const PAUSED: HandlerHealth = { ...HEALTHY, isActive: false };

type Attempt = Parameters<typeof healthAfter>[1];
const FINE: Attempt = { handler: "accepts", moved: undefined, slowedUntilMs: undefined };
const FAILED: Attempt = {
  handler: "fails",
  moved: { failures: 1, lastError: "HTTP 503", dueMs: NOW },
  slowedUntilMs: undefined,
};
const GONE: Attempt = { ...FAILED, handler: "is gone" };

it.each<[string, HandlerHealth, Attempt, Partial<HandlerHealth>]>([
  ["a first failure", HEALTHY, FAILED, { failingSinceMs: NOW, lastFailureMs: NOW }],
  ["a further one", FAILING, FAILED, { lastFailureMs: NOW }],
  ["a success", FAILING, FINE, HEALTHY],
  [
    "a success while it wants a pause",
    { ...FAILING, slowedUntilMs: NOW + 5 },
    FINE,
    { ...HEALTHY, slowedUntilMs: NOW + 5 },
  ],
  ["a success after the pause", { ...HEALTHY, slowedUntilMs: NOW }, FINE, { slowedUntilMs: null }],
  [
    "a longer pause",
    { ...HEALTHY, slowedUntilMs: NOW + 5 },
    { ...FINE, slowedUntilMs: NOW + 9.5 },
    { slowedUntilMs: NOW + 10 },
  ],
  ["a shorter pause", { ...HEALTHY, slowedUntilMs: NOW + 5 }, { ...FINE, slowedUntilMs: NOW + 1 }, {}],
  ["the failure of another handler", HEALTHY, { ...FAILED, handler: "unknown" }, {}],
  ["a failure while it is paused", PAUSED, { ...FAILED, slowedUntilMs: 9 }, { slowedUntilMs: 9 }],
  ["410 while it is paused", PAUSED, GONE, {}],
  [
    "410",
    HEALTHY,
    GONE,
    { lastFailureMs: NOW, isActive: false, disabledReason: "The handler answered 410 Gone." },
  ],
])("after %s the health of a handler is as before but for that", (_, before, attempt, changed) => {
  expect(healthAfter(before, attempt, NOW, undefined)).toEqual({ ...before, ...changed });
});

it("a success that changes nothing answers the same object, so that nothing is stored", () => {
  const slowed = { ...HEALTHY, slowedUntilMs: NOW + 5 };
  for (const before of [HEALTHY, slowed]) expect(healthAfter(before, FINE, NOW, undefined)).toBe(before);
});

it.each([
  ["the time is not over", 5 * DAY_MS, DAY_MS, null],
  [
    "it is",
    5 * DAY_MS,
    4 * DAY_MS + 1,
    "Every attempt since 1970-01-01T00:00:00.000Z has failed, the last with HTTP 503.",
  ],
  ["none is deactivated for failing", undefined, 99 * DAY_MS, null],
])("a subscription that fails for long is deactivated: %s", (_, disableAfterMs, failingTotalMs, reason) => {
  const before = { ...HEALTHY, failingSinceMs: 0, lastFailureMs: NOW - 20 * DAY_MS, failingTotalMs };
  const after = healthAfter(before, FAILED, NOW, disableAfterMs);
  expect(after.isActive).toBe(reason === null);
  expect(after.disabledReason ?? "").toContain(reason ?? "");
  // A fifth of the time in which nothing was tried counts at most.
  expect(after.failingTotalMs).toBe(failingTotalMs + (disableAfterMs === undefined ? 0 : DAY_MS));
});

it("a clock that was set back deactivates none", () => {
  const before = { ...HEALTHY, failingSinceMs: NOW + 9 * DAY_MS, lastFailureMs: NOW + 9 * DAY_MS };
  const changed = { failingSinceMs: NOW, lastFailureMs: NOW, failingTotalMs: 0 };
  expect(healthAfter(before, FAILED, NOW, 5 * DAY_MS)).toEqual({ ...before, ...changed });
});
