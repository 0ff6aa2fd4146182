import { beforeEach, expect, test } from "vitest";
import { subscribe } from "../support/records.ts";
import { useServed } from "../support/served.ts";

const served = useServed();
const { run, json, expectEach, write } = served;
const HANDLER = "http://127.0.0.1:9/hook";
/** Each test has an application of its own on the one server. */
let application = "";
let tests = 0;

beforeEach(() => {
  application = `app${++tests}`;
});

/** An action with this list of what is required, and these subscriptions to it. */
function registry(required: readonly string[], ...subscriptions: string[]): string {
  const action = `${application}.made`;
  const names = { application, action, handler: HANDLER };
  return JSON.stringify({
    actions: [{ action, application, schemata: { type: "object", required } }],
    subscriptions: subscriptions.map((subscription) => Object.assign({ subscription }, names)),
  });
}

const file = (text: string): string => write(`${application}.json`, text);

async function subscribed(): Promise<string[]> {
  return (await served.evreg.subscriptions.list({ application })).data
    .map(({ subscription }) => subscription)
    .toSorted();
}

test("prints its plan, carries it out, and has nothing to do the second time", async () => {
  const path = file(registry([], "one", "two"));
  const plan = [
    `+ action ${application}.made`,
    `+ subscription ${application}/one to ${application}.made`,
    `+ subscription ${application}/two to ${application}.made`,
    "Plan: 3 to create; 0 unchanged.",
    "",
  ].join("\n");
  const apply = `apply -f ${path}`;
  await expectEach([[`${apply} --dry-run`, 0, plan, ""]]);
  expect(await subscribed()).toEqual([]);
  const nothing = "Nothing to do; 3 unchanged.\n";
  await expectEach([
    [apply, 0, plan, /Done: 3 created, 0 changed, 0 deleted\.\n$/],
    [apply, 0, nothing, ""],
    [`${apply} --dry-run`, 0, nothing, ""],
    [`${apply} --prune`, 0, nothing, ""],
  ]);
});

test("a secret goes into a pipe only with --json, and else it is said how to get one", async () => {
  const told = new RegExp(
    `^For a secret of ${application}/one to ${application}.made: evreg subscriptions rotate-secret \\d+\nDone: `,
  );
  await expectEach([[`apply -f ${file(registry([], "one"))}`, 0, /^(?!.*whsec_)/s, told]]);
});

test("ineffective keywords are reported with their line, by a dry run too", async () => {
  const schema = "{ type: object,\n      properties: { at: { format: daytime } } }";
  const name = `${application}.slip`;
  const text = `actions:\n  - { action: ${name}, application: ${application}, schemata: ${schema} }`;
  const dry = await run("apply -f - --dry-run", { input: text });
  expect(dry.stderr).toMatch(/^Warning: stdin:3: \S+\.slip \/properties\/at\/format: .*daytime.*\n$/);
  const done = await run("apply -f -", { input: text });
  expect(done.stderr).toBe(`${dry.stderr}Done: 1 created, 0 changed, 0 deleted.\n`);
});

test("a filter that nothing of its action passes is warned of, also of an action that is made with it", async () => {
  const schema = "{ properties: { n: { type: string } }, required: [n] }";
  const actions = `actions: [{ action: ${application}.none, application: ${application}, schemata: ${schema} }]`;
  const filter = "{ properties: { n: { const: 1 } }, required: [n] }";
  const to = `application: ${application}, subscription: none, action: ${application}.none, handler: https://a.example`;
  const input = `${actions}\nsubscriptions: [{ ${to}, filter: ${filter} }]`;
  const { stderr } = await run("apply -f - --dry-run", { input });
  expect(stderr).toMatch(
    /^Warning: stdin:2: \S+ to \S+ \/properties\/n: no payload that the schema of \S+ allows/,
  );
});

test("--json prints one document of the plan and its results", async () => {
  const text = registry([], "one");
  const dry = await json("apply -f - --dry-run", { input: text });
  expect(dry).toMatchObject({
    data: [
      { operation: "create", noun: "action", action: `${application}.made`, result: "planned" },
      { operation: "create", noun: "subscription", subscription: "one", breaks: [], result: "planned" },
    ],
    meta: { dry_run: true, unchanged: 0, undeclared: { actions: [], subscriptions: [] } },
  });
  const done = await json("apply -f -", { input: text });
  const { rowid } = (await served.evreg.subscriptions.list({ application })).data[0]!;
  const made = { result: "done", rowid, secret: expect.stringMatching(/^whsec_/) };
  expect(done.data).toMatchObject([{ result: "done" }, made]);
  const lines = await run("apply -f - --output jsonl", { input: registry(["id"]) });
  expect(lines).toMatchObject({ code: 5, stderr: "" });
  expect(JSON.parse(lines.stdout)).toMatchObject({
    operation: "change",
    changes: [{ member: "schemata", from: { required: [] }, to: { required: ["id"] } }],
    breaks: [{ pointer: "/required", message: expect.any(String) }],
    suggestion: `${application}.made.v2`,
  });
});

test("a breaking change stops everything with 5, and --compatibility none allows it", async () => {
  await run(`apply -f ${file(registry([]))}`);
  const apply = `apply -f ${file(registry(["id"], "one"))}`;
  const shown = / {4}\/required: The property "id" has become required\. A producer/;
  await expectEach([
    [apply, 5, shown, /^Nothing was changed, as the plan holds/],
    [`${apply} --dry-run`, 5],
    [`${apply} --compatibility none`, 0, undefined, /Done: 1 created, 1 changed, 0 deleted\.\n$/],
  ]);
});

test("--prune deletes what is no longer declared, and without a terminal only with --yes", async () => {
  await run(`apply -f ${file(registry([], "one", "two"))}`);
  const apply = `apply -f ${file(registry([], "one"))}`;
  const two = `${application}/two to ${application}.made\n`;
  const left = `Not declared, and left alone without --prune:\n  ${two}`;
  await expectEach([
    [apply, 0, "Nothing to do; 2 unchanged.\n", left],
    [`${apply} --prune`, 2, undefined, /deletes 1 subscription, .*--yes/],
  ]);
  expect(await subscribed()).toEqual(["one", "two"]);
  const plan = `- subscription ${two}Plan: 1 to delete; 2 unchanged.\n`;
  await expectEach([
    [`${apply} --prune --yes`, 0, plan, "Done: 0 created, 0 changed, 1 deleted.\n"],
    [`${apply} --yes`, 2],
  ]);
  expect(await subscribed()).toEqual(["one"]);
});

test("a failed step is reported with the reason, and so is what was not tried; 7 when some was done", async () => {
  const inside = registry([], "one", "two").replace("127.0.0.1:9", "10.1.2.3");
  const apply = `apply -f ${file(inside)}`;
  const { code, stderr } = await run(apply);
  expect(code).toBe(7);
  expect(stderr).toContain(
    `Failed:\n  + subscription ${application}/one to ${application}.made: handler: its host is not allowed: 10.1.2.3`,
  );
  expect(stderr).toContain(
    `Not tried:\n  + subscription ${application}/two to ${application}.made\n1 created, 0 changed, 0 deleted. That stays; the same command goes on with the rest.\n`,
  );
  // Nor is anything deleted then.
  await subscribe(served.evreg, "old", { application, action: `${application}.made` });
  expect((await run(`${apply} --prune --yes`)).stderr).toContain(`  - subscription ${application}/old to`);
  expect(await subscribed()).toEqual(["old"]);
  const none = await run(`${apply} --json`);
  expect(none.code).toBe(1);
  expect(JSON.parse(none.stdout)).toMatchObject({
    data: [
      { result: "failed", error: { code: 422, details: { field: "handler" } } },
      { result: "not_tried" },
    ],
  });
});

test("all mistakes are reported at once with their places, before the server is asked anything", async () => {
  const mistakes = "  - { action: a..b, application: x, schemata: {} }\n  - { acton: c }\n";
  write("bad.yaml", `actions:\n${mistakes}`);
  const nobody = "--url http://127.0.0.1:9";
  const told =
    /^Error: The files have 2 mistakes:\n {2}bad\.yaml:2: action: .*\n {2}bad\.yaml:3: acton .*did you mean action\?\nNothing was changed\.\n/;
  const unreached = /Nothing listens at .*\nStart a server: evreg serve\. Or name another with --url\.\n$/;
  await expectEach([
    [`apply -f bad.yaml ${nobody}`, 2, "", told],
    ["apply -f gone.yaml", 2, "", /There is no file gone\.yaml/],
    [`apply -f ${file(registry([]))} ${nobody}`, 6, undefined, unreached],
    ["apply", 2],
  ]);
});

test("export writes what apply reads", async () => {
  await run(`apply -f ${file(registry(["id"], "one"))}`);
  const yaml = `actions:
  - action: ${application}.made
    application: ${application}
    schemata:
      type: object
      required:
        - id
subscriptions:
  - application: ${application}
    subscription: one
    action: ${application}.made
    handler: ${HANDLER}
`;
  const exporting = `export --application ${application}`;
  const none = `Error: No action and no subscription is of the application ${application}x. See which there are: evreg actions, evreg subscriptions\n`;
  expect(JSON.parse((await run(`${exporting} --json`)).stdout)).toEqual(JSON.parse(registry(["id"], "one")));
  await expectEach([
    [exporting, 0, yaml, ""],
    [`${exporting}x`, 3, "", none],
    ["apply -f - --dry-run --prune", 0, "Nothing to do; 2 unchanged.\n", "", { input: yaml }],
    ["export --output jsonl", 2],
  ]);
});
