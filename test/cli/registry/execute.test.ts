import { afterEach, beforeEach, expect, test } from "vitest";
import { executePlan, type ExecuteOptions } from "../../../src/cli/registry/execute.ts";
import type { Plan } from "../../../src/cli/registry/plan.ts";
import { EvregError } from "../../../src/domain/error.ts";
import type { SubscriptionWithSecret } from "../../../src/domain/subscription.ts";
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

async function created({ subscription, secret }: SubscriptionWithSecret): Promise<void> {
  secrets.push(`${subscription} ${secret}`);
}

function options(more: Partial<ExecuteOptions> = {}): ExecuteOptions {
  return { force: false, keepGoing: false, signal: new AbortController().signal, created, ...more };
}

/** What became of each step, in the plan's order. */
async function results(plan: Plan, more: Partial<ExecuteOptions> = {}, port = evreg): Promise<string[]> {
  const outcomes = await executePlan(port, plan, options(more));
  return plan.steps.map((step) => `${step.name}: ${outcomes.get(step)?.result}`);
}

function registry(count: number, handler = "https://a.example"): string {
  const numbers = Array.from({ length: count }, (_, number) => number);
  const actions = numbers.map((number) => `  - { action: a${number}, application: shop, schemata: {} }`);
  const subscriptions = numbers.map(
    (number) => `  - { application: b, subscription: s${number}, action: a${number}, handler: "${handler}" }`,
  );
  return `actions:\n${actions.join("\n")}\nsubscriptions:\n${subscriptions.join("\n")}\n`;
}

/** The port, with each call counted and what it does put before it. */
function watched(before: (call: string, input: unknown) => unknown): { port: Evreg; most: () => number } {
  let open = 0;
  let most = 0;
  const around = <T extends object>(noun: string, part: T): T =>
    new Proxy(part, {
      get(target, name: string) {
        const method = Reflect.get(target, name) as (...input: unknown[]) => Promise<unknown>;
        return async (...input: unknown[]) => {
          most = Math.max(most, ++open);
          try {
            await before(`${noun}.${name}`, input[0]);
            return await method.apply(target, input);
          } finally {
            open -= 1;
          }
        };
      },
    });
  const port = {
    ...evreg,
    actions: around("actions", evreg.actions),
    subscriptions: around("subscriptions", evreg.subscriptions),
  };
  return { port, most: () => most };
}

test("actions are applied before subscriptions to them, one call at a time", async () => {
  const calls: string[] = [];
  const { port, most } = watched((call) => calls.push(call));
  const plan = await planOf(evreg, registry(30));
  expect(new Set((await results(plan, {}, port)).map((line) => line.split(": ")[1]))).toEqual(
    new Set(["done"]),
  );
  expect(calls.lastIndexOf("actions.create")).toBeLessThan(calls.indexOf("subscriptions.create"));
  expect(most()).toBe(1);
  expect(secrets.toSorted()[0]).toMatch(/^s0 whsec_/);
  expect((await planOf(evreg, registry(30))).steps).toEqual([]);
});

test("apply stops at a failure; what was done stays, and the next plan has the rest", async () => {
  const refused = new EvregError("forbidden", "Not yours.");
  const { port } = watched((_, input) => {
    if ((input as { action?: string }).action === "a5") throw refused;
  });
  const plan = await planOf(evreg, registry(20));
  const told = await results(plan, {}, port);
  expect(told).toContain("a5: failed");
  expect(told).toContain("b/s0 to a0: not_tried");
  const rest = await planOf(evreg, registry(20));
  expect(rest.steps.length).toBeLessThan(40);
  expect(rest.steps.length).toBeGreaterThanOrEqual(21);
  await results(rest);
  expect((await planOf(evreg, registry(20))).steps).toEqual([]);
});

test("with --keep-going apply continues after failures, but not when the service is gone", async () => {
  const inside = registry(3).replace("https://a.example", "https://127.0.0.1");
  expect(await results(await planOf(evreg, inside), { keepGoing: true })).toEqual([
    "a0: done",
    "a1: done",
    "a2: done",
    "b/s0 to a0: failed",
    "b/s1 to a1: done",
    "b/s2 to a2: done",
  ]);
  const { port } = watched(() => {
    throw new EvregError("unreachable", "Nobody there.");
  });
  const gone = await results(
    await planOf(evreg, registry(30, "https://b.example")),
    { keepGoing: true },
    port,
  );
  expect(gone.filter((line) => line.endsWith("failed")).length).toBeLessThanOrEqual(8);
  expect(gone.at(-1)).toMatch(/not_tried$/);
});

test("an interrupted apply finishes what is in flight and starts nothing more", async () => {
  const abort = new AbortController();
  const { port } = watched(() => abort.abort());
  const told = await results(await planOf(evreg, registry(30)), { signal: abort.signal }, port);
  const done = told.filter((line) => line.endsWith(": done")).length;
  expect(done).toBeGreaterThan(0);
  expect(done).toBeLessThanOrEqual(8);
  const made = (await evreg.actions.list()).data.filter(({ action }) => !action.startsWith("evreg."));
  expect(made).toHaveLength(done);
});

test("a breaking schema is applied only on request, and only on the revision it was planned for", async () => {
  await evreg.actions.create({ action: "a", application: "shop", schemata: { type: "object" } });
  const text = "actions: [{ action: a, application: shop, schemata: { type: object, required: [id] } }]";
  const plan = await planOf(evreg, text);
  expect(await results(plan)).toEqual(["a: not_tried"]);
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
  expect(await results(failing, { keepGoing: true })).toEqual([
    "b/renamed to a1: failed",
    "b/s1 to a1: not_tried",
  ]);
  const plan = await planOf(evreg, renamed, { prune: true });
  expect(await results(plan)).toEqual(["b/renamed to a1: done", "b/s1 to a1: done"]);
});
