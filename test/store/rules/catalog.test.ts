import { expect, it } from "vitest";
import type { ActionChange } from "../../../src/store/catalog.ts";
import { actionAfter, type ActionState, checkActionExists } from "../../../src/store/rules/catalog.ts";

const BEFORE: ActionState = {
  application: "shop",
  revision: 3,
  compatibility: "full",
  compatibility_against: "last",
  deprecatedMs: 5,
  retiredMs: null,
  successor: "order.placed",
};

it.each<[string, Partial<ActionChange>, Partial<ActionState>]>([
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
  checkActionExists("order.*", () => false);
  checkActionExists("order.created", () => true);
  expect(() => checkActionExists("order.created", () => false)).toThrow("create it first");
});
