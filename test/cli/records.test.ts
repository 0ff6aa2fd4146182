import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { runProgram } from "../support/program.ts";
import { publish, register } from "../support/records.ts";
import { useServed } from "../support/served.ts";

const SCHEMA = {
  type: "object",
  properties: { id: { type: "integer" }, note: { type: "string" } },
  required: ["id"],
};
const HANDLER = "--handler http://127.0.0.1:9/hook";

const served = useServed(async ({ evreg }) => {
  await register(evreg, "order.created", SCHEMA);
  await register(evreg, "order.shipped");
});
const { data, run, json, expectEach, write } = served;

test("--json prints the API's answer byte for byte, jsonl its records, and a table is for people", async () => {
  const answer = await (await fetch(`${served.server.url}/v1/actions`)).text();
  const { data: records } = JSON.parse(answer) as { data: unknown[] };
  const lines = records.map((record) => `${JSON.stringify(record)}\n`).join("");
  const row = String.raw`order\.created +shop +1 +active +full +\d{4}-\d\d-\d\dT[\d:.]+Z`;
  await expectEach([
    ["actions --json", 0, `${answer}\n`],
    ["actions list --json", 0, `${answer}\n`],
    ["actions list --output jsonl", 0, lines],
    ["actions", 0, /^ACTION +APPLICATION +REVISION +STATE +MODE +CREATED\n/],
    ["actions", 0, new RegExp(`^${row}$`, "m")],
  ]);
});

test("a schema comes from a file or stdin, as JSON or YAML, with warnings for what checks nothing", async () => {
  write("schema.yaml", "type: object\nproperties:\n  id: {type: integer}\n");
  const warned = { input: '{"type": "object", "requird": ["id"]}' };
  const create = "actions create --application shop";
  await expectEach([
    [`${create} a.yaml --schema schema.yaml --json`, 0, /"schemata":\{"type":"object","prop/, ""],
    [`${create} a.stdin --schemata - --json`, 0, /"integer"/, "", { input: JSON.stringify(SCHEMA) }],
    [`${create} a.slip --schema -`, 0, /^(?!.*Warning)/s, /^Warning: .*requird/, warned],
  ]);
});

test("a refused change of an action reports why, and ends with the exit code for it", async () => {
  const breaking = { input: JSON.stringify({ ...SCHEMA, required: ["id", "note"] }) };
  const missing = 'Error: There is no action "no.such".\nSee those there are: evreg actions\n';
  const create = "actions create order.created --application shop --schema -";
  const update = "actions update order.created --schema -";
  const forced = "actions update order.shipped --schema - --compatibility none";
  await expectEach([
    ["actions get no.such", 3, "", missing],
    [create, 5, "", undefined, { input: "{}" }],
    [update, 5, "", /\n {2}- .*required.*order\.created\.v2/s, breaking],
    [update, 1, "", /stdin holds no schema/, { input: "[]" }],
    [`${update} --json`, 1, "", /^\{"error":"stdin:1: .*"code":400\}\n$/, { input: '{"a": b}' }],
    [forced, 0, /^Revision +2$/m, "", { input: '{"type": "object", "required": ["id"]}' }],
  ]);
});

test("a filter comes from a file or stdin, is checked, and is removed with none", async () => {
  await register(served.evreg, "a.sifted");
  write("filter.yaml", "required: [id]\nrequird: [x]\n");
  const create = `subscriptions create --application billing --subscription sifted --action a.sifted ${HANDLER}`;
  const update = "subscriptions update billing/sifted --filter";
  const shown = /^Filter +\{"required":\["id"\],"requird":\["x"\]\}$/m;
  await expectEach([
    [`${create} --filter filter.yaml`, 0, shown, /^Warning: .*requird/m],
    [`${update} -`, 1, "", /stdin: \/type: must be one of/, { input: '{"type": "strin"}' }],
  ]);
  const changed = await json(`${update} -`, { input: '{"requird": ["id"]}' });
  expect(changed).toMatchObject({
    data: { filter: { requird: ["id"] } },
    meta: { warnings: [{ pointer: "/requird" }] },
  });
  const filterOf = async (line: string) => (await json<{ filter: unknown }>(line)).data.filter;
  expect(await filterOf(`${update} none`)).toBeNull();
  expect(await filterOf(`${update} country=FR --filter id=7`)).toEqual({
    type: "object",
    properties: { country: { const: "FR" }, id: { const: 7 } },
    required: ["country", "id"],
  });
  expect(await filterOf(`${update} {"required":["id"]}`)).toEqual({ required: ["id"] });
  await run("subscriptions delete billing/sifted");
});

test("a subscription can be created, shown, paused, resumed and deleted; its secret is printed once", async () => {
  const name = "billing/invoices";
  const create = "subscriptions create --application billing --subscription invoices --action order.created";
  const created = await run(`${create} ${HANDLER} --max-retries 3`);
  const secret = /^Secret +(whsec_\S+)$/m.exec(created.stdout)?.[1] ?? "none";
  expect(created).toMatchObject({ code: 0, stderr: expect.stringContaining("shown only now") });
  expect(created.stderr).not.toContain(secret);
  const update = `subscriptions update ${name}`;
  await expectEach([
    [`subscriptions get ${name}`, 0, /^(?!.*whsec_).*^Retries +3$/ms],
    [`${update} --no-active --json`, 0, /"active":false/],
    ["subscriptions --no-active --output jsonl", 0, /^.+\n$/],
    ['publish order.created {"id":1}', 0],
  ]);
  const { stderr } = await run(`${update} --active`);
  const missed = /^It has missed 1 event\. Send what was missed: evreg (subscriptions replay .*)$/m.exec(
    stderr,
  );
  expect((await json([...(missed?.[1] ?? "").split(" "), "--dry-run"])).data).toMatchObject({ total: 1 });
  await expectEach([
    [`${update} --no-active`, 0, undefined, /It misses the events that are published from now on;/],
    [`${update} --active`, 0, undefined, /^(?!.*missed)/s],
    [`${update} --active --max-retries 0 --json`, 0, /"max_retries":0/],
    [`subscriptions delete ${name}`, 0, undefined, "Deleted.\n"],
    [`subscriptions get ${name}`, 3, ""],
    ["subscriptions", 0, "", /evreg subscriptions create/],
  ]);
});

test("a token is printed once, listed without its value, and can be revoked", async () => {
  const create = "tokens create deploy --scope read --scope publish:shop --expires 90d";
  const { data: created } = await json<{ rowid: number; token: string }>(create);
  expect(created).toMatchObject({
    scopes: ["read", "publish:shop"],
    expires_at: expect.stringMatching(/Z$/),
  });
  const [listed] = await expectEach([
    ["tokens", 0, /deploy +read publish:shop/],
    [`tokens revoke ${created.rowid}`, 0, undefined, "Revoked.\n"],
    [`tokens revoke ${created.rowid}`, 3],
    ["tokens create x --scope everything", 2, ""],
  ]);
  expect(`${listed?.stdout}${listed?.stderr}`).not.toContain(created.token);
});

test("colour is used on a terminal: not in a pipe, not with NO_COLOR, but when forced", async () => {
  const env = { NO_COLOR: "" };
  expect((await run("actions", { env })).stdout).not.toContain("\u001b");
  expect((await run("actions", { env: { ...env, FORCE_COLOR: "1" } })).stdout).toContain("\u001b[1m");
});

test.skipIf(!existsSync("/dev/full"))("output that cannot be written is an error", async () => {
  for (const command of ["actions", "events"]) {
    const through = ["sh", "-c", `exec "$@" ${command} > /dev/full`, "sh"];
    const outcome = await runProgram([], { env: { EVREG_DATA: data }, through });
    expect(outcome.code, command).toBe(1);
    expect(outcome.stderr).toMatch(/^Error: The output could not be written \(ENOSPC\).*\n$/);
  }
});

test("names and payloads cannot control the terminal", async () => {
  const evil = '{"id":2,"note":"\\u001b]0;gotcha\\u0007 and \u009b31m raw"}';
  const { rowid } = await publish(served.evreg, "order.shipped", evil);
  for (const line of [`events get ${rowid}`, "events"])
    // oxlint-disable-next-line no-control-regex
    expect((await run(line)).stdout).not.toMatch(/[\u001b\u0007\u009b]/);
  expect((await run(`events get ${rowid} --json`)).stdout).toContain(evil);
});

test("an incomplete table says so in a pipe too", async () => {
  for (let count = 0; count < 3; count += 1) await publish(served.evreg, "order.shipped", '{"id":5}');
  const two = "events --action order.shipped --limit 2";
  await expectEach([
    ["events --action order.shipped", 0, undefined, ""],
    [two, 0, undefined, new RegExp(`^2 of \\d+ events shown\\. Next page: evreg ${two} --after \\d+\\n$`)],
    [`${two} --output jsonl`, 0, undefined, ""],
  ]);
});
