import { expect, it } from "vitest";
import { NO_SETTINGS, type SubscriptionSettings } from "../../../src/domain/subscription-settings.ts";
import type { SubscriptionPatch } from "../../../src/store/catalog.ts";
import { type ChangeableSubscription, subscriptionAfter } from "../../../src/store/rules/catalog.ts";

const SUBSCRIPTION: ChangeableSubscription = {
  handler: "https://a.example/",
  maxRetries: 5,
  active: false,
  action: "order.created",
  disabledReason: "The handler answered 410 Gone.",
  settings: NO_SETTINGS,
};
const BLOCKS: Partial<SubscriptionSettings> = { ordered: true, on_exhausted: "block" };
const SKIPS: Partial<SubscriptionSettings> = { ordered: true, on_exhausted: "skip" };

it.each<[SubscriptionPatch, Partial<ChangeableSubscription>, ...("rebound" | "as new" | "exhausted fail")[]]>(
  [
    [{}, {}],
    [{ maxRetries: 3 }, { maxRetries: 3 }, "exhausted fail"],
    [{ action: "order.*" }, { action: "order.*" }, "rebound"],
    [{ action: "order.created" }, {}],
    [{ handler: "https://b.example/" }, { handler: "https://b.example/" }, "as new"],
    [{ handler: "https://a.example/" }, {}],
    [{ active: true }, { active: true, disabledReason: null }, "as new"],
    [{ active: false }, { disabledReason: null }],
    [{ settings: SKIPS }, { settings: { ...NO_SETTINGS, ...SKIPS } }],
    [
      { settings: SKIPS, maxRetries: 3 },
      { settings: { ...NO_SETTINGS, ...SKIPS }, maxRetries: 3 },
      "exhausted fail",
    ],
  ],
)("after %o a subscription is as before but for %o: %s", (patch, changed, ...follows) => {
  const { after, ...consequences } = subscriptionAfter(SUBSCRIPTION, patch);
  expect(after).toEqual({ ...SUBSCRIPTION, ...changed });
  expect(consequences).toEqual({
    isRebound: follows.includes("rebound"),
    resetsHealth: follows.includes("as new"),
    failsExhausted: follows.includes("exhausted fail"),
  });
});

it.each<[SubscriptionPatch, boolean]>([
  [{ settings: { on_exhausted: "skip" } }, true],
  [{ maxRetries: 0 }, false],
  [{ settings: { ordered: false } }, true],
])("what blocks and has used up its retries fails after %o: %s", (patch, fails) => {
  const before = { ...SUBSCRIPTION, settings: { ...NO_SETTINGS, ...BLOCKS } };
  expect(subscriptionAfter(before, patch).failsExhausted).toBe(fails);
});
