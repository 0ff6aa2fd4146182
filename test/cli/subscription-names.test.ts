import { expect, test } from "vitest";
import { subscriptionId } from "../../src/cli/subscriptions/name.ts";
import { publish, register, subscribe } from "../support/records.ts";
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
  for (const action of ["order.created", "order.paid"]) await register(evreg, action);
  for (const [application, name, action] of SUBSCRIPTIONS) {
    await subscribe(evreg, name, { application, action, active: false });
  }
});
const { json, expectEach } = served;

test.each([
  ["billing/invoices", 1],
  ["  billing/invoices ", 1],
  ["billing/invoices#order.created", 1],
  ["billing/mail#order.paid", 3],
  ["a/b/c#order.paid", 6],
  ["shop/7", 7],
  ["the shop/it's", 10],
])("%j names one subscription", async (name, rowid) => {
  expect(await subscriptionId(served.evreg, name)).toBe(rowid);
});

test.each([
  ["billing/mail", ["2: billing/mail#order.created", "3: billing/mail#order.paid"]],
  ["a/b/c", ["4: a/b/c#order.created", "5: a/b/c#order.created", "6: a/b/c#order.paid"]],
  // One has an action's name in its own.
  ["shop/x#order.paid", ["8: shop/x#order.paid#order.created", "9: shop/x#order.paid"]],
])("%j names several, and the refusal lists them", async (name, candidates) => {
  const failure = subscriptionId(served.evreg, name);
  await expect(failure).rejects.toMatchObject({ code: "usage", details: { candidates } });
});

test.each([
  ["billing/invoice", "Did you mean billing/invoices?"],
  ["invoices", "APPLICATION/SUBSCRIPTION"],
  ["billing/invoices#order.paid", "APPLICATION/SUBSCRIPTION"],
  ["/nowhere/", "APPLICATION/SUBSCRIPTION"],
  [`${"x".repeat(200)}/y`, "APPLICATION/SUBSCRIPTION"],
])("%j names none, and the error says what to type", async (name, told) => {
  await expect(subscriptionId(served.evreg, name)).rejects.toMatchObject({
    code: "not_found",
    message: expect.stringContaining(told) as string,
  });
});

test("every command that takes a subscription's ID takes its name", async () => {
  const name = "billing/invoices";
  await expectEach([
    [`subscriptions get ${name} --json`, 0, /"rowid":1,/],
    [`subscriptions update ${name} --max-retries 3 --json`, 0, /"rowid":1,.*"max_retries":3/],
    [`subscriptions rotate-secret ${name} --json`, 0, /"rowid":1,/],
    [`subscriptions replay ${name} --from 1h --status missed --json`, 0, /"subscription_id":1,/],
  ]);
  await served.evreg.subscriptions.update(1, { active: true });
  await publish(served.evreg);
  for (const [list, count] of [
    [`replays --subscription ${name}`, 1],
    [`deliveries --subscription ${name}`, 1],
    ["deliveries --subscription shop/7", 0],
  ] as const) {
    expect((await json<readonly object[]>(list)).data, list).toHaveLength(count);
  }
  await expectEach([[`subscriptions delete ${name} --json`, 0, /"rowid":1,/]]);
});

test("a name that is not there ends with exit code 3, one of several with 2 and what to type", async () => {
  await expectEach([
    ["subscriptions get billing/none", 3, "", /See those there are: evreg subscriptions/],
    ["deliveries --subscription billing/mail", 2, "", /- 3: billing\/mail#order\.paid\n/],
  ]);
});

test("of a pattern that no action matches so far it says so, and which was probably meant", async () => {
  const told =
    /No action that may be read here matches ordr\.\* yet; those that are made later will\. Did you mean order\.\*\?\n/;
  const create = "subscriptions create --application billing --subscription typo --handler https://a.example";
  await expectEach([
    [`${create} --action ordr.*`, 0, undefined, told],
    ["subscriptions update billing/typo --action ordr.*", 0, undefined, told],
    ["subscriptions update billing/typo --action order.*", 0, undefined, ""],
  ]);
});
