import { describe, expect, it } from "vitest";
import { ATTENTION_REASONS } from "../../../src/domain/operations.ts";
import { byGravity, causeOf, type SubscriptionCondition } from "../../../src/store/rules/attention.ts";

const NOW = 1_000_000;
const WELL: SubscriptionCondition = {
  isActive: true,
  disabledReason: null,
  failingSinceMs: null,
  lastFailureMs: null,
  waitEndMs: 0,
  blockedBy: null,
  unclaimedSinceMs: null,
};
const ALL_AT_ONCE = {
  ...WELL,
  failingSinceMs: 5,
  lastFailureMs: 7,
  waitEndMs: NOW + 1,
  blockedBy: 3,
  unclaimedSinceMs: 9,
};

describe("why a subscription needs a person", () => {
  it.each([
    [WELL, undefined],
    [{ ...WELL, isActive: false }, undefined],
    [{ ...ALL_AT_ONCE, isActive: false }, undefined],
    [
      { ...ALL_AT_ONCE, isActive: false, disabledReason: "gone" },
      { reason: "deactivated", sinceMs: 7, more: { error: "gone" } },
    ],
    [ALL_AT_ONCE, { reason: "blocked", sinceMs: 5, more: { delivery_id: 3 } }],
    [
      { ...ALL_AT_ONCE, blockedBy: null },
      { reason: "failing", sinceMs: 5 },
    ],
    [
      { ...ALL_AT_ONCE, blockedBy: null, failingSinceMs: null },
      { reason: "unclaimed", sinceMs: 9 },
    ],
    [{ ...WELL, unclaimedSinceMs: NOW - 299_999 }, undefined],
    [
      { ...WELL, waitEndMs: NOW + 1 },
      { reason: "slowed", sinceMs: null },
    ],
    [{ ...WELL, waitEndMs: NOW }, undefined],
  ])("with %o is %o", (subscription, cause) => {
    expect(causeOf(subscription, NOW)).toEqual(cause);
  });

  it("has the gravest first, then what has lasted longest", () => {
    const causes = ATTENTION_REASONS.toReversed().flatMap((reason) => [
      { reason, sinceMs: null },
      { reason, sinceMs: 9 },
      { reason, sinceMs: 5 },
    ]);
    expect(causes.toSorted(byGravity)).toEqual(
      ATTENTION_REASONS.flatMap((reason) => [5, 9, null].map((sinceMs) => ({ reason, sinceMs }))),
    );
  });
});
