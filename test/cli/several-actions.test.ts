import { expect, test } from "vitest";
import type { SubscriptionWithSecret } from "../../src/domain/subscription.ts";
import { useServed } from "./served.ts";

const served = useServed(async ({ evreg }) => {
  await evreg.actions.create({ action: "order.created", application: "shop", schemata: { type: "object" } });
});
const { run, json } = served;

const COMMON = "subscriptions create --application billing --handler http://127.0.0.1:9/hook".split(" ");
const create = (name: string, ...more: readonly string[]) => [...COMMON, "--subscription", name, ...more];
const BOTH = ["--action", "order.*", "--action", "order.created"];
const actionsOf = async (name: string) =>
  (await served.evreg.subscriptions.list({ application: "billing" })).data
    .filter(({ subscription }) => subscription === name)
    .map(({ action }) => action);

test("where one action does not exist, it says which were made and how to go on", async () => {
  const refused = await run(create("books", ...BOTH, "--action", "order.creatd"));
  expect(refused.code).toBe(3);
  expect(refused.stderr).toContain(
    "Made: order.*, order.created. Not made: order.creatd. For the rest, give the same command with --action order.creatd alone.",
  );
  expect(refused.stderr).toContain("Did you mean order.created?");
  expect(refused.stdout).toContain("whsec_");
});

test("of a pattern that no action matches so far it says so, and which was probably meant", async () => {
  const line =
    "No action that may be read here matches ordr.* yet; those that are made later will. Did you mean order.*?\n";
  const made = await run(create("typo", "--action", "ordr.*"));
  expect(made).toMatchObject({ code: 0, stderr: expect.stringContaining(line) as string });
  const several = await run(create("typos", "--action", "ordr.*", "--action", "order.*"));
  expect(several.stderr.split(line)).toHaveLength(2);
  const changed = await run(["subscriptions", "update", "billing/typo", "--action", "ordr.*"]);
  expect(changed).toMatchObject({ code: 0, stderr: expect.stringContaining(line) as string });
  const right = await run(["subscriptions", "update", "billing/typo", "--action", "order.*"]);
  expect(right).toMatchObject({ code: 0, stderr: "" });
});

test("given again, it makes those that are missing, with the same secret", async () => {
  const first = await json<SubscriptionWithSecret>(create("mail", "--action", "order.*"));
  const { code, stdout, stderr } = await run(create("mail", ...BOTH));
  expect({ code, stderr }).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("There before, and left as they are: order.*.\n"),
  });
  expect(stdout).toContain(first.data.secret);
  expect(await actionsOf("mail")).toEqual(["order.*", "order.created"]);
  expect(await run(create("mail", ...BOTH))).toMatchObject({ code: 5, stdout: "" });
});
