import { afterEach, beforeEach, expect, test } from "vitest";
import type { Plan } from "../../../src/cli/registry/plan.ts";
import type { Evreg } from "../../../src/evreg.ts";
import { type LocalService, openLocalService } from "../../support/local-service.ts";
import { register } from "../../support/records.ts";
import { doSteps, planOf } from "./setup.ts";

let local: LocalService;
let evreg: Evreg;

beforeEach(async () => {
  local = await openLocalService();
  ({ evreg } = local);
});
afterEach(() => local.close());

/** What became of each step, in the plan's order. */
async function results(
  plan: Plan,
  options: Parameters<typeof doSteps>[2] = {},
  port = evreg,
): Promise<string[]> {
  const { done, failure } = await doSteps(port, plan, options);
  return plan.steps.map(({ name }, index) => {
    const isFailed = index === done.length && failure !== undefined;
    return `${name}: ${index < done.length ? "done" : isFailed ? "failed" : "not tried"}`;
  });
}

test("an interrupted apply finishes the step under way and starts nothing more, and the next one does the rest", async () => {
  const abort = new AbortController();
  const { actions } = evreg;
  const create: typeof actions.create = (input) => {
    abort.abort();
    return actions.create(input);
  };
  const port = { ...evreg, actions: { ...actions, create } };
  const text = `actions:
  - { action: a0, application: shop, schemata: {} }
  - { action: a1, application: shop, schemata: {} }
subscriptions: [{ application: b, subscription: s, action: a0, handler: "https://a.example" }]`;
  const outcomes = await results(await planOf(evreg, text), { signal: abort.signal }, port);
  expect(outcomes).toEqual(["a0: done", "a1: not tried", "b/s to a0: not tried"]);
  expect(await results(await planOf(evreg, text))).toEqual(["a1: done", "b/s to a0: done"]);
  expect(await planOf(evreg, text)).toMatchObject({ steps: [], unchanged: 3 });
});

test("a breaking schema is applied only on request, and only on the revision it was planned for", async () => {
  await register(evreg, "a");
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
  await register(evreg, "a");
  const plan = await planOf(evreg, "actions: [{ action: a, application: crm, schemata: { type: object } }]");
  expect(plan.steps[0]?.changes).toEqual([{ member: "application", from: "shop", to: "crm" }]);
  expect(await results(plan)).toEqual(["a: done"]);
  const { data } = await evreg.actions.get("a");
  expect(data).toMatchObject({ application: "crm", schemata: { type: "object" } });
});
