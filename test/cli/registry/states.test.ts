import { afterAll, beforeAll, expect, test } from "vitest";
import { subscriptionsFor } from "../../../src/cli/listen/subscriptions.ts";
import { planText } from "../../../src/cli/registry/apply.ts";
import { exported, exportText, registryOf } from "../../../src/cli/registry/export.ts";
import type { Evreg } from "../../../src/evreg.ts";
import { type LocalService, openLocalService } from "../../support/local-service.ts";
import { doSteps, planOf } from "./setup.ts";

// Each test has actions of its own, by the first part of their names.

let local: LocalService;
let evreg: Evreg;

beforeAll(async () => {
  local = await openLocalService();
  ({ evreg } = local);
});
afterAll(() => local.close());

function file(...actions: readonly string[]): string {
  return `actions:\n${actions.map((one) => `  - { application: shop, schemata: {}, action: ${one} }\n`).join("")}`;
}

async function apply(text: string, port = evreg): Promise<string[]> {
  const plan = await planOf(port, text);
  expect(plan.problems).toEqual([]);
  const { done, failure } = await doSteps(port, plan);
  expect(failure).toBeUndefined();
  expect(done).toHaveLength(plan.steps.length);
  return plan.steps.map(({ operation, name }) => `${operation} ${name}`);
}

async function state(action: string): Promise<unknown> {
  const { deprecated, retired, successor } = (await evreg.actions.get(action)).data;
  return [deprecated, retired, successor];
}

test("a successor may be declared in the same file, in any order, and be retired itself", async () => {
  const text = file(
    "a.mid, retired: true, successor: a.new",
    "a.new",
    "a.old, deprecated: true, retired: true, successor: a.mid",
    "a.other, deprecated: true",
  );
  expect(await apply(text)).toEqual([
    "create a.mid",
    "create a.new",
    "create a.old",
    "create a.other",
    "change a.mid",
    "change a.old",
    "change a.other",
  ]);
  expect(await state("a.old")).toEqual([true, true, "a.mid"]);
  expect(await state("a.mid")).toEqual([false, true, "a.new"]);
  expect(await state("a.other")).toEqual([true, false, null]);
  expect((await planOf(evreg, text)).steps).toEqual([]);
});

test("an export contains states and successors, and recreates them elsewhere", async () => {
  await apply(file("b.new", "b.old, retired: true, successor: b.new"));
  const text = exportText(exported(await registryOf(evreg, "shop")), "yaml");
  expect(text).toMatch(
    /action: b\.old\n.*application: shop\n.*schemata: \{\}\n.*retired: true\n.*successor: b\.new/,
  );
  expect(text).not.toMatch(/(?:deprecated|retired): false|successor: null/);
  expect((await planOf(evreg, text)).steps).toEqual([]);
  const elsewhere = await openLocalService();
  try {
    await apply(text, elsewhere.evreg);
    expect(exportText(exported(await registryOf(elsewhere.evreg, "shop")), "yaml")).toBe(text);
  } finally {
    await elsewhere.close();
  }
});

test("an export leaves out what evreg listen has made for itself", async () => {
  await apply(file("l.one"));
  const listened = { actions: ["l.one"], application: "shop", ordered: false };
  expect(await subscriptionsFor(evreg, listened)).toHaveLength(1);
  await subscriptionsFor(evreg, { ...listened, subscription: "kept" });
  const { subscriptions: kept } = exported(await registryOf(evreg, "shop"));
  expect(kept.map(({ subscription }) => subscription)).toEqual(["kept"]);
  const { undeclared } = await planOf(evreg, file("l.one"));
  expect(undeclared.subscriptions).toEqual(["shop/kept to l.one"]);
});

test("what a file declares is planned upon what there is, also under the name of a listener", async () => {
  const more = "application: shop, action: m.one, mode: pull, expires_after_ms: 24h";
  const names = ["listen-orders", "listen-me@here"].map((name) => `  - {${more}, subscription: ${name}}\n`);
  const text = `${file("m.one")}subscriptions:\n${names.join("")}`;
  await apply(text);
  expect((await planOf(evreg, text)).steps).toEqual([]);
  const { subscriptions } = exported(await registryOf(evreg, "shop"));
  expect(subscriptions.map(({ subscription }) => subscription)).toContain("listen-orders");
});

test("a file without a state leaves it unchanged, and a plan shows a state that changes", async () => {
  await apply(file("d.old", "d.new"));
  await evreg.actions.update("d.old", { deprecated: true, successor: "d.new" });
  expect((await planOf(evreg, file("d.old", "d.new"))).steps).toEqual([]);
  const text = file("d.old, deprecated: false, retired: true, successor: null");
  expect(planText(await planOf(evreg, text), { force: false })).toContain(
    '~ action d.old: deprecated true → false, retired false → true, successor "d.new" → null\n',
  );
  await apply(text);
  expect(await state("d.old")).toEqual([false, true, null]);
});
