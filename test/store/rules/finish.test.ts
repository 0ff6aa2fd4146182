import { describe, expect, it } from "vitest";
import { DELIVERY_TRANSITIONS, type DeliveryStatus } from "../../../src/domain/delivery.ts";
import { LONGEST_WAIT_MS } from "../../../src/domain/retry.ts";
import type { AttemptEnding } from "../../../src/store/queue.ts";
import {
  type AttemptedDelivery,
  type AttemptFacts,
  type HandlerHealth,
  healthAfter,
  type SettingsInForce,
  verdictOn,
} from "../../../src/store/rules/finish.ts";

// The stories of deliveries (`contract/store/delivery-stories.ts`) show what becomes of them. Here is what these do not tell.

const NOW = 1_000_000;
const HANDLER = "https://a.example/";
const SETTINGS: SettingsInForce = {
  handler: HANDLER,
  maxRetries: 5,
  onExhausted: null,
  retryScheduleMs: null,
};
const FRESH: AttemptedDelivery = { failures: 0, lastError: null, key: null };

interface Given
  extends
    Partial<AttemptedDelivery>,
    Partial<Omit<SettingsInForce, "handler">>,
    Partial<Omit<AttemptFacts, "handler">> {
  readonly sentTo?: string;
}

function judged(ending: AttemptEnding, { sentTo = HANDLER, ...given }: Given = {}) {
  const facts = { ending, statusCode: 500, ...given, handler: sentTo };
  return verdictOn(facts, { ...FRESH, ...given }, { ...SETTINGS, ...given }, NOW);
}

const BLOCKS = { key: 7, onExhausted: "block" } as const;
const SKIPS = { key: 7, onExhausted: "skip" } as const;
const AT_ONCE = { retryScheduleMs: [0], maxRetries: 1 };

describe("a failed attempt", () => {
  it.each<[Given, inMs: number | undefined]>([
    [{}, 0],
    [{ failures: 4 }, 16_000],
    [{ failures: 1, jitter: 0.5 }, 2_025],
    [{ failures: 4, retryAfterMs: 1_000 }, 16_000],
    [{ retryAfterMs: 30_000 }, 30_000],
    [{ retryAfterMs: LONGEST_WAIT_MS }, LONGEST_WAIT_MS],
    [{ failures: 1, retryScheduleMs: [5, 7] }, 7],
    [{ failures: 5, ...BLOCKS }, 32_000],
    [{ failures: 1, ...AT_ONCE, ...BLOCKS }, 1_000],
    [{ ...AT_ONCE, ...BLOCKS }, 0],
    // Nothing waits behind a delivery that has no place in an order.
    [{ failures: 5, onExhausted: "block" }, undefined],
  ])("with %o is followed by another one in %s ms", (given, inMs) => {
    expect(judged("failed", given).retryAtMs).toBe(inMs === undefined ? undefined : NOW + inMs);
  });

  it("leaves the last error in a word, until it is delivered", () => {
    expect(judged("failed", { statusCode: 404 }).moved?.lastError).toBe("HTTP 404");
    expect(judged("failed", { errorCode: "timeout" }).moved?.lastError).toBe("timeout");
    expect(verdictOn({ ending: "failed" }, FRESH, SETTINGS, NOW).moved?.lastError).toBe("network_error");
    expect(judged("interrupted", { lastError: "HTTP 404" }).moved?.lastError).toBe("HTTP 404");
  });

  it("says nothing of a handler that the subscription did not have then", () => {
    expect(judged("failed").handler).toBe("fails");
    expect(judged("failed", { sentTo: "https://before.example/" }).handler).toBeUndefined();
  });
});

it("leads only where the table of states does", () => {
  const causes = {
    delivered: "handler answered 2xx",
    failed: "attempt failed",
    gone: "attempt failed",
    interrupted: "attempt interrupted or never started",
    "never started": "attempt interrupted or never started",
    filtered: "excluded by the filter",
  } as const;
  const seen = new Set<string>();
  for (const ending of Object.keys(causes) as AttemptEnding[]) {
    for (const failures of [0, 1, 9]) {
      for (const settings of [{}, BLOCKS, SKIPS]) {
        const { state, moved } = judged(ending, { failures, maxRetries: 1, ...settings });
        const hasFailed = (moved?.failures ?? failures) > 0;
        const status: DeliveryStatus = state === "pending" && hasFailed ? "waiting" : state;
        const ways = DELIVERY_TRANSITIONS.filter(([from, to]) => from === "delivering" && to === status);
        expect(ways.flatMap(([, , why]) => why)).toContain(causes[ending]);
        seen.add(status);
      }
    }
  }
  expect([...seen].toSorted()).toEqual(["delivered", "failed", "filtered", "pending", "waiting"]);
});

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

type Reported = Parameters<typeof healthAfter>[1];
const FINE: Reported = { handler: "accepts" };
const REFUSED: Reported = { handler: "fails", moved: { failures: 1, lastError: "HTTP 503", dueMs: NOW } };

it.each<[string, HandlerHealth, Reported, Partial<HandlerHealth>]>([
  ["a failure after the clock was set back", LATER, REFUSED, { failingSinceMs: NOW, lastFailureMs: NOW }],
  ["a success while it wants a pause", { ...FAILING, slowedUntilMs: NOW + 5 }, FINE, SLOWED],
  ["a success after the pause", { ...HEALTHY, slowedUntilMs: NOW }, FINE, { slowedUntilMs: null }],
  ["a longer pause", SLOWED, { ...FINE, slowedUntilMs: NOW + 9.5 }, { slowedUntilMs: NOW + 10 }],
  ["the failure of another handler", HEALTHY, { ...REFUSED, handler: undefined }, {}],
  ["a failure while it is paused", PAUSED, { ...REFUSED, slowedUntilMs: 9 }, { slowedUntilMs: 9 }],
  ["410 while it is paused", PAUSED, { ...REFUSED, handler: "is gone" }, {}],
])("after %s the health of a handler is as before but for that", (_, before, attempt, changed) => {
  expect(healthAfter(before, attempt, NOW, 432_000_000)).toEqual({ ...before, ...changed });
});

it("a success that changes nothing answers the same object, so that nothing is stored", () => {
  for (const before of [HEALTHY, SLOWED]) expect(healthAfter(before, FINE, NOW, undefined)).toBe(before);
});
