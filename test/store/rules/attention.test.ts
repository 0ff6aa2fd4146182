import { describe, expect, it } from "vitest";
import { ATTENTION_REASONS } from "../../../src/model/operations.ts";
import { byGravity, causeOf } from "../../../src/store/rules/attention.ts";

const NOW = Date.parse("2026-01-02T00:00:00.000Z");
const at = (ms: number): string => new Date(ms).toISOString();
const WELL = {
  active: true,
  disabled_reason: null,
  blocked_by: null,
  failing_since: null,
  slowed_until: null,
  lastFailure: null,
  unclaimedSince: null,
};
const ALL_AT_ONCE = {
  ...WELL,
  blocked_by: 3,
  failing_since: at(5),
  slowed_until: at(NOW + 1),
  lastFailure: at(7),
  unclaimedSince: at(9),
};

describe("why a subscription needs a person", () => {
  it.each([
    [WELL, undefined],
    [{ ...WELL, active: false }, undefined],
    [{ ...ALL_AT_ONCE, active: false }, undefined],
    [
      { ...ALL_AT_ONCE, active: false, disabled_reason: "gone" },
      { reason: "deactivated", since: at(7), more: { error: "gone" } },
    ],
    [ALL_AT_ONCE, { reason: "blocked", since: at(5), more: { delivery_id: 3 } }],
    [
      { ...ALL_AT_ONCE, blocked_by: null },
      { reason: "failing", since: at(5) },
    ],
    [
      { ...ALL_AT_ONCE, blocked_by: null, failing_since: null },
      { reason: "unclaimed", since: at(9) },
    ],
    [{ ...WELL, unclaimedSince: at(NOW - 299_999) }, undefined],
    [
      { ...WELL, slowed_until: at(NOW + 1) },
      { reason: "slowed", since: null },
    ],
    [{ ...WELL, slowed_until: at(NOW) }, undefined],
  ])("with %o is %o", (subscription, cause) => {
    expect(causeOf(subscription, subscription, NOW)).toEqual(cause);
  });

  it("has the gravest first, then what has lasted longest", () => {
    const causes = ATTENTION_REASONS.toReversed().flatMap((reason) => [
      { reason, since: null },
      { reason, since: at(9) },
      { reason, since: at(5) },
    ]);
    expect(causes.toSorted(byGravity)).toEqual(
      ATTENTION_REASONS.flatMap((reason) => [at(5), at(9), null].map((since) => ({ reason, since }))),
    );
  });
});
