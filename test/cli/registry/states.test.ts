import { afterAll, beforeAll, expect, test } from "vitest";
import { subscriptionsFor } from "../../../src/cli/listen/subscriptions.ts";
import { executePlan } from "../../../src/cli/registry/execute.ts";
import { exported, exportText, registryOf } from "../../../src/cli/registry/export.ts";
import { planText } from "../../../src/cli/registry/report.ts";
import type { Evreg } from "../../../src/evreg.ts";
import { type LocalService, openLocalService } from "../../support/local-service.ts";
import { lines, planOf } from "./setup.ts";

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

async function apply(text: string, signal = new AbortController().signal, port = evreg): Promise<string[]> {
  const plan = await planOf(evreg, text);
  expect(lines(plan)).toEqual([]);
  const options = { force: false, keepGoing: false, signal, created: async () => {} };
  const outcomes = await executePlan(port, plan, options);
  return plan.steps.map((step) => `${step.operation} ${step.name}: ${outcomes.get(step)?.result}`);
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
    "create a.mid: done",
    "create a.new: done",
    "create a.old: done",
    "create a.other: done",
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
    const plan = await planOf(elsewhere.evreg, text);
    const { signal } = new AbortController();
    await executePlan(elsewhere.evreg, plan, {
      force: false,
      keepGoing: false,
      signal,
      created: async () => {},
    });
    expect(exportText(exported(await registryOf(elsewhere.evreg, "shop")), "yaml")).toBe(text);
  } finally {
    await elsewhere.close();
  }
});

test("an export leaves out what evreg listen has made for itself", async () => {
  await apply(file("l.one"));
  const subscriptions = await subscriptionsFor(evreg, {
    actions: ["l.one"],
    application: "shop",
    ordered: false,
  });
  await subscriptionsFor(evreg, {
    actions: ["l.one"],
    application: "shop",
    subscription: "kept",
    ordered: false,
  });
  expect(subscriptions).toHaveLength(1);
  const named = (await registryOf(evreg, "shop")).subscriptions.map(({ subscription }) => subscription);
  expect(named).toEqual(["kept"]);
});

test("an action that is in use again can succeed the one that succeeded it", async () => {
  await apply(file("c.a, deprecated: true, successor: c.b", "c.b", "c.c"));
  await apply(file("c.a, deprecated: false", "c.b, deprecated: true, successor: c.a", "c.c"));
  expect(await state("c.a")).toEqual([false, false, null]);
  expect(await state("c.b")).toEqual([true, false, "c.a"]);
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

test("a schema and a state of one action are one step, done when both are", async () => {
  await apply(file("e.old", "e.new"));
  const text = file(
    "e.old, compatibility: none, deprecated: true, successor: e.new",
    "e.more, retired: true",
  );
  const abort = new AbortController();
  const port: Evreg = {
    ...evreg,
    actions: {
      ...evreg.actions,
      update: (...input) => {
        abort.abort();
        return evreg.actions.update(...input);
      },
    },
  };
  expect(await apply(text, abort.signal, port)).toEqual([
    "create e.more: not_tried",
    "change e.old: not_tried",
  ]);
  expect((await evreg.actions.get("e.old")).data.compatibility).toBe("none");
  expect(await apply(text)).toEqual(["change e.more: done", "change e.old: done"]);
  expect(await state("e.old")).toEqual([true, false, "e.new"]);
});

test("an invalid successor is reported with its place, before anything is done", async () => {
  const text = file(
    "f.a, successor: f.b",
    "f.b, deprecated: true, successor: f.b",
    "f.c, retired: true, successor: f.none",
    "f.d, deprecated: true, successor: f.a",
  );
  expect(lines(await planOf(evreg, text))).toEqual([
    "registry.yaml:2: successor is only for an action that is deprecated or retired; declare one of them as well",
    "registry.yaml:3: successor must be another action",
    "registry.yaml:4: there is no action f.none, or none that this token may read, and no file declares it",
  ]);
});
