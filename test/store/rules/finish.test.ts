import { describe, expect, it } from "vitest";
import { DELIVERY_TRANSITIONS, type DeliveryStatus } from "../../../src/domain/delivery.ts";
import { LONGEST_WAIT_MS } from "../../../src/domain/retry.ts";
import type { AttemptEnding } from "../../../src/store/queue.ts";
import {
  type AttemptedDelivery,
  type AttemptFacts,
  type SettingsInForce,
  verdictOn,
} from "../../../src/store/rules/finish.ts";

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

describe("what becomes of a delivery", () => {
  it.each<
    [
      AttemptEnding,
      Given,
      state: string,
      attempt: string | undefined,
      failures?: number,
      inMs?: number | null,
    ]
  >([
    ["delivered", {}, "delivered", "delivered"],
    ["delivered", { failures: 5 }, "delivered", "delivered"],
    ["filtered", {}, "filtered", undefined, 0, null],
    ["never started", { failures: 2 }, "pending", undefined],
    ["interrupted", { failures: 5 }, "pending", "returned", 5, 0],
    ["failed", {}, "pending", "failed", 1, 0],
    ["failed", { failures: 4 }, "pending", "failed", 5, 16_000],
    ["failed", { failures: 1, jitter: 0.5 }, "pending", "failed", 2, 2_025],
    ["failed", { failures: 4, retryAfterMs: 1_000 }, "pending", "failed", 5, 16_000],
    ["failed", { retryAfterMs: 30_000 }, "pending", "failed", 1, 30_000],
    ["failed", { retryAfterMs: LONGEST_WAIT_MS }, "pending", "failed", 1, LONGEST_WAIT_MS],
    ["failed", { failures: 5 }, "failed", "failed", 6, null],
    ["failed", { maxRetries: 0 }, "failed", "failed", 1, null],
    ["failed", { failures: 1, retryScheduleMs: [5, 7] }, "pending", "failed", 2, 7],
    ["failed", { failures: 5, ...BLOCKS }, "pending", "failed", 6, 32_000],
    [
      "failed",
      { failures: 1, maxRetries: 1, retryScheduleMs: [0], ...BLOCKS },
      "pending",
      "failed",
      2,
      1_000,
    ],
    ["failed", { failures: 0, maxRetries: 1, retryScheduleMs: [0], ...BLOCKS }, "pending", "failed", 1, 0],
    ["failed", { failures: 5, ...SKIPS }, "failed", "failed", 6, null],
    ["failed", { failures: 5, onExhausted: "block" }, "failed", "failed", 6, null],
    ["gone", {}, "failed", "failed", 1, null],
    ["gone", BLOCKS, "pending", "failed", 1, 0],
    ["gone", SKIPS, "failed", "failed", 1, null],
    ["gone", { sentTo: "https://before.example/" }, "pending", "failed", 1, 0],
    ["gone", { sentTo: "https://before.example/", failures: 5 }, "failed", "failed", 6, null],
  ])("after one that %s with %o is %s", (ending, given, state, attempt, failures, inMs) => {
    const verdict = judged(ending, given);
    expect(verdict).toMatchObject({ state, attempt });
    expect(verdict.moved?.failures).toBe(failures);
    const dueMs = typeof inMs === "number" ? NOW + inMs : inMs;
    expect(verdict.moved?.dueMs).toBe(dueMs);
    expect(verdict.retryAtMs).toBe(attempt === "failed" ? (dueMs ?? undefined) : undefined);
  });

  it("starts to block with the failure after its last retry, and only with that", () => {
    const starts = [0, 1, 2, 3].map((failures) => judged("failed", { failures, maxRetries: 2, ...BLOCKS }));
    expect(starts.map(({ startsBlocking }) => startsBlocking)).toEqual([false, false, true, false]);
    expect(judged("failed", { failures: 2, maxRetries: 2, ...SKIPS }).startsBlocking).toBe(false);
  });

  it("has the last error in a word, until it is delivered", () => {
    expect(judged("failed", { statusCode: 404 }).moved?.lastError).toBe("HTTP 404");
    expect(judged("failed", { errorCode: "timeout" }).moved?.lastError).toBe("timeout");
    expect(verdictOn({ ending: "failed" }, FRESH, SETTINGS, NOW).moved?.lastError).toBe("network_error");
    expect(judged("interrupted", { lastError: "HTTP 404" }).moved?.lastError).toBe("HTTP 404");
  });
});

describe("what an attempt says of the handler", () => {
  const BEFORE = { sentTo: "https://before.example/" };

  it.each<[AttemptEnding, Given, string]>([
    ["delivered", {}, "accepts"],
    ["failed", {}, "fails"],
    ["failed", BEFORE, "unknown"],
    ["gone", {}, "is gone"],
    ["gone", BEFORE, "unknown"],
    ["interrupted", {}, "unknown"],
    ["never started", {}, "unknown"],
    ["filtered", {}, "unknown"],
  ])("that %s with %o is: it %s", (ending, given, handler) => {
    expect(judged(ending, given).handler).toBe(handler);
  });

  it("slows the handler that asked for it, and no other", () => {
    expect(judged("failed", { slowUntilMs: 77 }).slowedUntilMs).toBe(77);
    expect(judged("failed", { slowUntilMs: 77, ...BEFORE }).slowedUntilMs).toBeUndefined();
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
