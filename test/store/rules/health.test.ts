import { describe, expect, it } from "vitest";
import {
  type HandlerHealth,
  type HandlerSigns,
  healthAfter,
  HEALTHY,
} from "../../../src/store/rules/health.ts";

const NOW = 1_000_000;
const DAY_MS = 86_400_000;
const NO_SIGNS: HandlerSigns = {
  hasSucceeded: false,
  lastError: undefined,
  slowedUntilMs: undefined,
  isGone: false,
};
const FAILING: HandlerHealth = {
  failingSinceMs: 100,
  lastFailureMs: 900,
  failingTotalMs: 800,
  slowedUntilMs: NOW + 5,
};

function after(
  before: HandlerHealth,
  signs: Partial<HandlerSigns>,
  isActive = true,
  disableAfterMs?: number,
) {
  return healthAfter(before, { ...NO_SIGNS, ...signs }, isActive, NOW, disableAfterMs);
}

describe("what is known of a handler", () => {
  it("begins to fail with the first failure, and is forgotten with a success", () => {
    const { health } = after(HEALTHY, { lastError: "HTTP 500" });
    expect(health).toEqual({ ...HEALTHY, failingSinceMs: NOW, lastFailureMs: NOW });
    expect(after(health, { hasSucceeded: true }).health).toEqual(HEALTHY);
  });

  it("keeps a pause that lasts after a success", () => {
    const slowed = { ...HEALTHY, slowedUntilMs: NOW + 5 };
    expect(after(FAILING, { hasSucceeded: true }).health).toEqual(slowed);
    expect(after({ ...FAILING, slowedUntilMs: NOW }, { hasSucceeded: true }).health).toEqual(HEALTHY);
  });

  it("counts a failure after a success of the same call anew", () => {
    const { health } = after(FAILING, { hasSucceeded: true, lastError: "timeout" });
    expect(health).toMatchObject({ failingSinceMs: NOW, lastFailureMs: NOW, failingTotalMs: 0 });
  });

  it("waits as long as the longest wait that was asked for", () => {
    const until = [NOW + 1, NOW + 9.5].map(
      (slowedUntilMs) => after(FAILING, { slowedUntilMs }).health.slowedUntilMs,
    );
    expect(until).toEqual([NOW + 5, NOW + 10]);
  });

  it("says nothing of a subscription that is not active, but for what was asked for", () => {
    expect(after(HEALTHY, { lastError: "timeout", isGone: true, slowedUntilMs: 9 }, false)).toEqual({
      health: { ...HEALTHY, slowedUntilMs: 9 },
      disabledReason: undefined,
    });
  });
});

describe("a subscription is deactivated", () => {
  it("when its handler is gone", () => {
    expect(after(HEALTHY, { isGone: true })).toEqual({
      health: { ...HEALTHY, lastFailureMs: NOW },
      disabledReason: "The handler answered 410 Gone.",
    });
  });

  it.each([
    ["the time is not over", 5 * DAY_MS, DAY_MS, undefined],
    ["it is", 5 * DAY_MS, 4 * DAY_MS + 1, "Every attempt since"],
    ["none is deactivated for failing", undefined, 99 * DAY_MS, undefined],
  ])("after failures for long: %s", (_, disableAfterMs, failingTotalMs, reason) => {
    const before = { ...HEALTHY, failingSinceMs: 0, lastFailureMs: NOW - 20 * DAY_MS, failingTotalMs };
    const { health, disabledReason } = after(before, { lastError: "HTTP 503" }, true, disableAfterMs);
    if (reason === undefined) expect(disabledReason).toBeUndefined();
    else
      expect(disabledReason).toContain(
        `${reason} 1970-01-01T00:00:00.000Z has failed, the last with HTTP 503.`,
      );
    // Of the time in which nothing was tried a fifth counts at most.
    const counted = disableAfterMs === undefined ? 0 : DAY_MS;
    expect(health.failingTotalMs).toBe(failingTotalMs + counted);
  });

  it("never for a clock that was set back", () => {
    const before = { ...HEALTHY, failingSinceMs: NOW + 9 * DAY_MS, lastFailureMs: NOW + 9 * DAY_MS };
    const { health, disabledReason } = after(before, { lastError: "timeout" }, true, 5 * DAY_MS);
    expect(health).toMatchObject({ failingSinceMs: NOW, lastFailureMs: NOW, failingTotalMs: 0 });
    expect(disabledReason).toBeUndefined();
  });
});
