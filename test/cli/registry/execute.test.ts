import { afterEach, beforeEach, expect, test } from "vitest";
import { executeSteps } from "../../../src/cli/registry/execute.ts";
import type { Plan } from "../../../src/cli/registry/plan.ts";
import { EvregError } from "../../../src/domain/error.ts";
import type { Evreg } from "../../../src/evreg.ts";
import { type LocalService, openLocalService } from "../../support/local-service.ts";
import { planOf } from "./setup.ts";

let local: LocalService;
let evreg: Evreg;
let secrets: string[];

beforeEach(async () => {
  local = await openLocalService();
  ({ evreg } = local);
  secrets = [];
});
afterEach(() => local.close());

interface Options {
  readonly force?: boolean;
  readonly signal?: AbortSignal;
}

/** What became of each step, in the plan's order. */
async function results(plan: Plan, options: Options = {}, port = evreg): Promise<string[]> {
  const { force = false, signal = new AbortController().signal } = options;
  const { done, failure } = await executeSteps(port, plan.steps, {
    force,
    signal,
    created: async ({ subscription, secret }) => void secrets.push(`${subscription} ${secret}`),
  });
  return plan.steps.map(({ name }, index) => {
    const isFailed = index === done.length && failure !== undefined;
    return `${name}: ${index < done.length ? "done" : isFailed ? "failed" : "not tried"}`;
  });
}

function registry(count: number, handler = "https://a.example"): string {
  const numbers = Array.from({ length: count }, (_, number) => number);
  const actions = numbers.map((number) => `  - { action: a${number}, application: shop, schemata: {} }`);
  const subscriptions = numbers.map(
    (number) => `  - { application: b, subscription: s${number}, action: a${number}, handler: "${handler}" }`,
  );
  return `actions:\n${actions.join("\n")}\nsubscriptions:\n${subscriptions.join("\n")}\n`;
}

/** The port, with something put before each creation. */
function watched(before: (action: string, noun: string) => void): Evreg {
  const { actions, subscriptions } = evreg;
  return {
    ...evreg,
    actions: {
      ...actions,
      create: async (input) => {
        before(input.action, "action");
        return actions.create(input);
      },
    },
    subscriptions: {
      ...subscriptions,
      create: async (input) => {
        before(input.action, "subscription");
        return subscriptions.create(input);
      },
    },
  };
}

test("actions are applied before subscriptions to them, and the next plan has nothing to do", async () => {
  const nouns: string[] = [];
  const port = watched((_, noun) => nouns.push(noun));
  const plan = await planOf(evreg, registry(3));
  expect(await results(plan, {}, port)).toEqual(plan.steps.map(({ name }) => `${name}: done`));
  expect(nouns.join(" ")).toMatch(/^(action ?){3}(subscription ?){3}$/);
  expect(secrets[0]).toMatch(/^s0 whsec_/);
  expect((await planOf(evreg, registry(3))).steps).toEqual([]);
});

test("apply stops at a failure; what was done stays, and the next plan has the rest", async () => {
  const port = watched((action) => {
    if (action === "a1") throw new EvregError("forbidden", "Not yours.");
  });
  expect(await results(await planOf(evreg, registry(2)), {}, port)).toEqual([
    "a0: done",
    "a1: failed",
    "b/s0 to a0: not tried",
    "b/s1 to a1: not tried",
  ]);
  const rest = await planOf(evreg, registry(2));
  expect(rest.steps).toHaveLength(3);
  await results(rest);
  expect((await planOf(evreg, registry(2))).steps).toEqual([]);
});

test("an interrupted apply finishes the step under way and starts nothing more", async () => {
  const abort = new AbortController();
  const port = watched(() => abort.abort());
  const told = await results(await planOf(evreg, registry(2)), { signal: abort.signal }, port);
  expect(told).toEqual(["a0: done", "a1: not tried", "b/s0 to a0: not tried", "b/s1 to a1: not tried"]);
});

test("a breaking schema is applied only on request, and only on the revision it was planned for", async () => {
  await evreg.actions.create({ action: "a", application: "shop", schemata: { type: "object" } });
  const text = "actions: [{ action: a, application: shop, schemata: { type: object, required: [id] } }]";
  const plan = await planOf(evreg, text);
  expect(await results(plan)).toEqual(["a: failed"]);
  expect(await results(plan, { force: true })).toEqual(["a: done"]);
  expect((await evreg.actions.get("a")).data).toMatchObject({ revision: 2, schemata: { required: ["id"] } });

  const late = await planOf(evreg, text.replace("[id]", "[]"));
  await evreg.actions.update("a", { schemata: { type: "object" } }, { compatibility: "none" });
  expect(await results(late, { force: true })).toEqual(["a: failed"]);
  expect((await evreg.actions.get("a")).data.revision).toBe(3);
});

test("an owner can change without the schema", async () => {
  await evreg.actions.create({ action: "a", application: "shop", schemata: { type: "object" } });
  const plan = await planOf(evreg, "actions: [{ action: a, application: crm, schemata: { type: object } }]");
  expect(plan.steps[0]?.changes).toEqual([{ member: "application", from: "shop", to: "crm" }]);
  expect(await results(plan)).toEqual(["a: done"]);
  expect((await evreg.actions.get("a")).data).toMatchObject({
    application: "crm",
    schemata: { type: "object" },
  });
});

test("nothing is deleted unless all else succeeded", async () => {
  await results(await planOf(evreg, registry(2)));
  const renamed = registry(2).replace("subscription: s1", "subscription: renamed");
  const inside = renamed.replace(/(renamed.*)a\.example/, "$110.1.2.3");
  const failing = await planOf(evreg, inside, { prune: true });
  expect(await results(failing)).toEqual(["b/renamed to a1: failed", "b/s1 to a1: not tried"]);
  const plan = await planOf(evreg, renamed, { prune: true });
  expect(await results(plan)).toEqual(["b/renamed to a1: done", "b/s1 to a1: done"]);
});
