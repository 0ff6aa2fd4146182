import { expect, it } from "vitest";
import { NO_SETTINGS, type SubscriptionSettings } from "../../../src/domain/subscription-settings.ts";
import type { ActionChange, SubscriptionPatch } from "../../../src/store/catalog.ts";
import {
  actionAfter,
  type ChangeableAction,
  checkActionExists,
  subscriptionAfter,
  type ChangeableSubscription,
} from "../../../src/store/rules/catalog.ts";

const BEFORE: ChangeableAction = {
  application: "shop",
  revision: 3,
  compatibility: "full",
  compatibility_against: "last",
  deprecatedMs: 5,
  retiredMs: null,
  successor: "order.placed",
};

it.each<[string, Partial<ActionChange>, Partial<ChangeableAction>]>([
  ["nothing", {}, {}],
  ["a schema", { schemata: {} }, { revision: 4 }],
  ["an application", { application: "till" }, { application: "till", revision: 4 }],
  ["a rule", { settings: { compatibility: "none" } }, { compatibility: "none" }],
  ["deprecating once more", { settings: { deprecated: true } }, {}],
  ["not deprecating any more", { settings: { deprecated: false } }, { deprecatedMs: null }],
  ["retiring", { settings: { retired: true } }, { retiredMs: 9 }],
  ["no successor", { settings: { successor: null } }, { successor: null }],
])("after a change of %s, an action is as before but for that", (_, change, changed) => {
  const after = actionAfter(BEFORE, { action: "order.created", expectedVersion: 1, ...change }, 9);
  expect(after).toEqual({ ...BEFORE, ...changed });
});

it("a subscription needs an action that exists, or a pattern", () => {
  checkActionExists("order.*", false);
  checkActionExists("order.created", true);
  expect(() => checkActionExists("order.created", false)).toThrow("create it first");
});

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
