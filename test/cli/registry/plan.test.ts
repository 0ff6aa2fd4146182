import { afterEach, beforeEach, expect, test } from "vitest";
import type { Plan } from "../../../src/cli/registry/plan.ts";
import { planText } from "../../../src/cli/registry/apply.ts";
import type { Evreg } from "../../../src/evreg.ts";
import { type LocalService, openLocalService } from "../../support/local-service.ts";
import { register, subscribe } from "../../support/records.ts";
import { lines, planOf } from "./setup.ts";

let local: LocalService;
let evreg: Evreg;

beforeEach(async () => {
  local = await openLocalService();
  ({ evreg } = local);
  await register(evreg, "order.created", { type: "object", required: ["id"] });
  await subscribe(evreg, "invoices", { handler: "https://a.example" });
});
afterEach(() => local.close());

const ACTION =
  "actions: [{ action: order.created, application: shop, schemata: { required: [id], type: object } }]\n";
const SAME =
  "application: billing, subscription: invoices, action: order.created, handler: https://a.example";

const told = (plan: Plan): string => planText(plan, { force: false });
const subscription = (more = "") => `${ACTION}subscriptions: [{ ${SAME}${more} }]`;

test("what matches its declaration is unchanged, in whichever order its schema is written", async () => {
  const plan = await planOf(evreg, subscription());
  expect(plan).toMatchObject({ steps: [], unchanged: 2, problems: [] });
  expect(told(plan)).toBe("Nothing to do; 2 unchanged.\n");
});

test("a difference is shown with the old and the new value", async () => {
  const text = subscription(", max_retries: 3, headers: { X-A: b }").replace("a.example", "b.example");
  const plan = await planOf(evreg, text);
  expect(told(plan)).toBe(
    '~ subscription billing/invoices to order.created: handler "https://a.example" → "https://b.example", max_retries 5 → 3, headers\n' +
      "Plan: 1 to change; 1 unchanged.\n",
  );
  const body = { handler: "https://b.example", max_retries: 3, headers: { "X-A": "b" } };
  expect(plan.steps[0]?.body).toEqual(body);
});

test("a member that a file omits is reset to its default; whether it is active stays", async () => {
  const changed = {
    max_retries: 9,
    bearer: "none",
    rate_limit: 5,
    ordered: true,
    on_exhausted: "skip",
  } as const;
  await evreg.subscriptions.update(1, { active: false, ...changed });
  const plan = await planOf(evreg, subscription());
  const usual = { max_retries: 5, bearer: "secret", rate_limit: null, ordered: false, on_exhausted: null };
  expect(plan.steps[0]?.body).toEqual(usual);
  const active = await planOf(evreg, subscription(", active: true"));
  expect(active.steps[0]?.body).toMatchObject({ active: true });
});

test("omitted retries are those of the schedule, as for a new subscription", async () => {
  const schedule = ", retry_schedule: [0, 1000, 60000]";
  const first = await planOf(evreg, subscription(schedule));
  expect(first.steps[0]?.body).toEqual({ max_retries: 3, retry_schedule: [0, 1_000, 60_000] });
  await evreg.subscriptions.update(1, first.steps[0]!.body);
  expect((await planOf(evreg, subscription(schedule))).steps).toEqual([]);
});

test("a breaking change is shown with each break and the way out", async () => {
  const text = ACTION.replace("[id]", "[id, total]");
  const plan = await planOf(evreg, text);
  expect(told(plan).replace(/(shown by:) .*/, "$1 …")).toBe(
    [
      "! action order.created: schemata",
      '    /required: The property "total" has become required. A producer that does not send it is refused.',
      "      shown by: …",
      '      instead: Add "total" as an optional property.',
      "    This would break someone. Declare it as order.created.v2 beside order.created, and publish to both for a while; or apply it all the same with --compatibility none (scope admin).",
      "Plan: 1 that breaks someone; 0 unchanged.",
      "",
    ].join("\n"),
  );
  const second = "actions: [{ action: order.created.v2, application: shop, schemata: {} }, ";
  const third = told(await planOf(evreg, text.replace("actions: [", second)));
  expect(third).toContain("Declare it as order.created.v3 beside order.created,");
  expect(planText(plan, { force: true })).toContain("Applied all the same, as --compatibility none says.");
});

test.each([
  [
    "a subscription to an action that nobody declares",
    `actions: [{ action: new, application: shop, schemata: {} }]
subscriptions:
  - { application: a, subscription: s, action: new, handler: https://a.example }
  - application: a
    subscription: s
    action: nowhere
    handler: https://a.example`,
    /:6: there is no action nowhere, or none that this token may read, and no file declares it$/,
  ],
  [
    "a new action whose name evreg keeps for itself",
    "actions:\n  - application: shop\n    schemata: {}\n    action: evreg.mine",
    /:4: action: must not begin with evreg\./,
  ],
  [
    "a schema",
    "actions:\n  - action: a\n    application: b\n    schemata:\n      properties:\n        zip:\n          pattern: '('",
    /:7: schemata\.properties\.zip\.pattern: the pattern/,
  ],
  [
    "a filter",
    `subscriptions:\n  - { application: x, subscription: y, action: order.created, handler: "https://a.example",\n      filter: { type: nothing } }`,
    /:3: filter\.type: /,
  ],
])("what is wrong with %s is reported with its line", async (_, text, expected) => {
  expect(lines(await planOf(evreg, text))).toEqual([expect.stringMatching(expected)]);
});

test("an existing subscription is no mistake for a token that may not read its action", async () => {
  const token = await local.as(["read:billing", "write:billing"]);
  const text = subscription().slice(ACTION.length);
  expect(await planOf(token, text)).toMatchObject({ steps: [], unchanged: 1, problems: [] });
});

test("only subscriptions of applications that the files name are pruned, and never an action", async () => {
  await register(evreg, "order.paid");
  await evreg.actions.create({ action: "user.created", application: "crm", schemata: {} });
  const paid = { action: "order.paid", handler: "https://a.example" };
  await subscribe(evreg, "old", paid);
  await subscribe(evreg, "theirs", { ...paid, application: "others" });
  const left = { actions: ["order.paid"], subscriptions: ["billing/old to order.paid"] };
  const kept = await planOf(evreg, subscription());
  expect(kept).toMatchObject({ steps: [], undeclared: left });
  const pruned = await planOf(evreg, subscription(), { prune: true });
  expect(pruned.undeclared).toEqual(left);
  expect(told(pruned)).toBe("- subscription billing/old to order.paid\nPlan: 1 to delete; 2 unchanged.\n");
});

test("a bearer value is sent for a subscription that has none yet, and unchanged afterwards", async () => {
  const missing = await planOf(evreg, subscription(", bearer: own"));
  expect(lines(missing)).toEqual([
    "registry.yaml:2: billing/invoices to order.created has no value of its own for bearer yet; name the file that holds it as bearer_token_file",
  ]);
  await evreg.subscriptions.update(1, { bearer_token: "hidden-value" });
  expect(await planOf(evreg, subscription(", bearer: own"))).toMatchObject({ steps: [], problems: [] });
  const back = await planOf(evreg, subscription());
  expect(back.steps[0]?.body).toEqual({ bearer: "secret" });
});

test("names in a plan cannot control the terminal", async () => {
  const handler = "https://a.example/\u202e";
  const text = `subscriptions: [{ application: a, subscription: b, action: order.created, handler: "${handler}" }]`;
  expect(told(await planOf(evreg, text))).not.toContain("\u202e");
});
