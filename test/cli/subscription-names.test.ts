import { expect, test } from "vitest";
import { pastTime } from "../../src/domain/formats.ts";
import { subscriptionId } from "../../src/cli/subscriptions/name.ts";
import type { Delivery } from "../../src/domain/delivery.ts";
import type { Replay } from "../../src/domain/replay.ts";
import type { Subscription } from "../../src/domain/subscription.ts";
import type { Evreg } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { useServed } from "../support/served.ts";

/** Made in this order, so the first one has the ID 1. */
const SUBSCRIPTIONS = [
  ["billing", "invoices", "order.created"],
  ["billing", "mail", "order.created"],
  ["billing", "mail", "order.paid"],
  ["a/b", "c", "order.created"],
  ["a", "b/c", "order.created"],
  ["a", "b/c", "order.paid"],
  ["shop", "7", "order.created"],
  ["shop", "x#order.paid", "order.created"],
  ["shop", "x", "order.paid"],
  ["the shop", "it's", "order.created"],
] as const;

const served = useServed(async ({ evreg }) => {
  for (const action of ["order.created", "order.paid"]) {
    await evreg.actions.create({ action, application: "shop", schemata: { type: "object" } });
  }
  for (const [application, subscription, action] of SUBSCRIPTIONS) {
    const names = { application, subscription, action, active: false };
    await evreg.subscriptions.create({ ...names, handler: "http://127.0.0.1:9/hook" });
  }
});
const { run, json } = served;
const evregOf = (): Evreg => served.evreg;

test.each([
  ["billing/invoices", 1],
  ["  billing/invoices ", 1],
  ["billing/invoices#order.created", 1],
  ["billing/mail#order.paid", 3],
  ["a/b/c#order.paid", 6],
  ["shop/7", 7],
  ["the shop/it's", 10],
])("%j names one subscription", async (name, rowid) => {
  expect(await subscriptionId(evregOf(), name)).toBe(rowid);
});

test.each([
  ["billing/mail", ["2: billing/mail#order.created", "3: billing/mail#order.paid"]],
  ["a/b/c", ["4: a/b/c#order.created", "5: a/b/c#order.created", "6: a/b/c#order.paid"]],
  // One has an action's name in its own.
  ["shop/x#order.paid", ["8: shop/x#order.paid#order.created", "9: shop/x#order.paid"]],
])("%j names several, and the refusal lists them", async (name, candidates) => {
  const failure = subscriptionId(evregOf(), name);
  await expect(failure).rejects.toMatchObject({ code: "usage", details: { candidates } });
});

test.each([
  ["billing/invoice", "Did you mean billing/invoices?"],
  ["invoices", "APPLICATION/SUBSCRIPTION"],
  ["billing/invoices#order.paid", "APPLICATION/SUBSCRIPTION"],
  ["/nowhere/", "APPLICATION/SUBSCRIPTION"],
  [`${"x".repeat(200)}/y`, "APPLICATION/SUBSCRIPTION"],
])("%j names none, and the error says what to type", async (name, told) => {
  await expect(subscriptionId(evregOf(), name)).rejects.toMatchObject({
    code: "not_found",
    message: expect.stringContaining(told) as string,
  });
});

test("every command that takes a subscription's ID takes its name", async () => {
  const name = "billing/invoices";
  const got = await json<Subscription>(["subscriptions", "get", name]);
  expect(got.data.rowid).toBe(1);
  const updated = await json<Subscription>(["subscriptions", "update", name, "--max-retries", "3"]);
  expect(updated.data).toMatchObject({ rowid: 1, max_retries: 3 });
  const rotated = await json<Subscription>(["subscriptions", "rotate-secret", name]);
  expect(rotated.data.rowid).toBe(1);
  const replay = ["subscriptions", "replay", name, "--from", "1h", "--status", "missed"];
  const begun = await run([...replay, "--json"]);
  expect((JSON.parse(begun.stdout) as { data: Replay }).data.subscription_id).toBe(1);
  expect((await json<Replay[]>(["replays", "--subscription", name])).data).toHaveLength(1);
  await evregOf().subscriptions.update(1, { active: true });
  await evregOf().events.publish({ action: "order.created", payload: RawJson.fromText("{}") });
  expect((await json<Delivery[]>(["deliveries", "--subscription", name])).data).toHaveLength(1);
  expect((await json<Delivery[]>("deliveries --subscription shop/7")).data).toHaveLength(0);
  expect((await json<Subscription>(["subscriptions", "delete", name])).data.rowid).toBe(1);
});

test("a name that is not there ends with exit code 3, one of several with 2 and what to type", async () => {
  const [missing, several] = await Promise.all([
    run("subscriptions get billing/none"),
    run("deliveries --subscription billing/mail"),
  ]);
  expect(missing).toMatchObject({ code: 3, stdout: "" });
  expect(missing.stderr).toContain("See those there are: evreg subscriptions");
  expect(several).toMatchObject({ code: 2, stdout: "" });
  expect(several.stderr).toContain("- 3: billing/mail#order.paid\n");
});

test("of a pattern that no action matches so far it says so, and which was probably meant", async () => {
  const line =
    "No action that may be read here matches ordr.* yet; those that are made later will. Did you mean order.*?\n";
  const words = "subscriptions create --application billing --subscription typo --action ordr.*".split(" ");
  const made = await run([...words, "--handler", "http://127.0.0.1:9/hook"]);
  expect(made).toMatchObject({ code: 0, stderr: expect.stringContaining(line) as string });
  const changed = await run("subscriptions update billing/typo --action ordr.*");
  expect(changed).toMatchObject({ code: 0, stderr: expect.stringContaining(line) as string });
  const right = await run("subscriptions update billing/typo --action order.*");
  expect(right).toMatchObject({ code: 0, stderr: "" });
});

const NOW_MS = Date.UTC(2026, 10, 23, 12);

test.each([
  ["30m", "2026-11-23T11:30:00.000Z"],
  ["1h", "2026-11-23T11:00:00.000Z"],
  ["2d", "2026-11-21T12:00:00.000Z"],
  ["99999d", "1970-01-01T00:00:00.000Z"],
  ["2026-11-22", "2026-11-22T00:00:00Z"],
  ["2026-11-22T08:00:00+01:00", "2026-11-22T08:00:00+01:00"],
  ["2026-02-30", "2026-02-30"],
  ["yesterday", "yesterday"],
])("as a time of the past, %s is %s", (text, time) => {
  expect(pastTime(text, NOW_MS)).toBe(time);
});
