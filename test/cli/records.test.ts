import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { RawJson } from "../../src/json/raw-json.ts";
import { useServed } from "./served.ts";
import { cleanEnv, PROGRAM } from "../support/program.ts";

const SCHEMA = {
  type: "object",
  properties: { id: { type: "integer" }, note: { type: "string" } },
  required: ["id"],
};
const HANDLER = "http://127.0.0.1:9/hook";

const served = useServed(async ({ evreg }) => {
  await evreg.actions.create({ action: "order.created", application: "shop", schemata: SCHEMA });
  await evreg.actions.create({ action: "order.shipped", application: "shop", schemata: { type: "object" } });
});
const { folder, data, run, json } = served;

async function body(path: string): Promise<string> {
  return (await fetch(served.server.url + path)).text();
}

test("--json prints the API's answer byte for byte, jsonl its records, and a table is for people", async () => {
  const [bare, document, lines, table] = await Promise.all([
    run("actions --json"),
    run("actions list --json"),
    run("actions list --output jsonl"),
    run("actions"),
  ]);
  expect(document.stdout).toBe(`${await body("/v1/actions")}\n`);
  expect(bare.stdout).toBe(document.stdout);
  const records = (JSON.parse(document.stdout) as { data: unknown[] }).data;
  expect(lines.stdout).toBe(records.map((record) => `${JSON.stringify(record)}\n`).join(""));
  expect(table.stdout.split("\n")[0]).toMatch(/^ACTION +APPLICATION +REVISION +STATE +MODE +CREATED$/);
  expect(table.stdout).toMatch(/^order\.created +shop +1 +active +full +\d{4}-\d\d-\d\dT[\d:.]+Z$/m);
});

test("a schema comes from a file or stdin, as JSON or YAML, with warnings for what checks nothing", async () => {
  writeFileSync(
    join(folder, "schema.yaml"),
    "type: object\nrequired: [id]\nproperties:\n  id: {type: integer}\n",
  );
  const [fromYaml, fromStdin, slip] = await Promise.all([
    json("actions create a.yaml --application shop --schema schema.yaml"),
    json("actions create a.stdin --application shop --schemata -", {
      input: JSON.stringify(SCHEMA),
    }),
    run("actions create a.slip --application shop --schema -", {
      input: '{"type": "object", "requird": ["id"]}',
    }),
  ]);
  expect(fromYaml.data).toMatchObject({ action: "a.yaml", schemata: { required: ["id"] } });
  expect(fromStdin.data).toMatchObject({ action: "a.stdin", schemata: SCHEMA });
  expect(slip.code).toBe(0);
  expect(slip.stderr).toMatch(/^Warning: .*requird/);
  expect(slip.stdout).not.toContain("Warning");
});

test("a refused change of an action reports why, and ends with the exit code for it", async () => {
  const breaking = JSON.stringify({ ...SCHEMA, required: ["id", "note"] });
  const [missing, taken, broken, noSchema, notJson, forced] = await Promise.all([
    run("actions get no.such"),
    run("actions create order.created --application shop --schema -", { input: "{}" }),
    run("actions update order.created --schema -", { input: breaking }),
    run("actions update order.created --schema -", { input: "[]" }),
    run("actions update order.created --schema - --json", { input: '{"type": object}' }),
    run("actions update order.shipped --schema - --compatibility none", {
      input: '{"type": "object", "required": ["id"]}',
    }),
  ]);
  expect(missing).toMatchObject({ code: 3, stdout: "" });
  expect(missing.stderr).toBe('Error: There is no action "no.such".\nSee those there are: evreg actions\n');
  expect(taken).toMatchObject({ code: 5, stdout: "" });
  expect(broken).toMatchObject({ code: 5, stdout: "" });
  expect(broken.stderr).toMatch(/\n {2}- .*required/);
  expect(broken.stderr).toContain("order.created.v2");
  expect(noSchema).toMatchObject({ code: 1, stdout: "" });
  expect(noSchema.stderr).toContain("stdin holds no schema");
  expect(notJson).toMatchObject({ code: 1, stdout: "" });
  expect(JSON.parse(notJson.stderr)).toMatchObject({
    code: 400,
    error: expect.stringMatching(/^stdin: .*line 1/),
  });
  expect(forced).toMatchObject({ code: 0, stderr: "" });
  expect(forced.stdout).toMatch(/^Revision +2$/m);
});

test("a filter comes from a file or stdin, is checked, and is removed with none", async () => {
  await served.evreg.actions.create({
    action: "a.sifted",
    application: "shop",
    schemata: { type: "object" },
  });
  writeFileSync(join(folder, "filter.yaml"), "required: [id]\nrequird: [x]\n");
  const create =
    "subscriptions create --application billing --subscription sifted --action a.sifted --handler";
  const created = await run([...create.split(" "), HANDLER, "--filter", "filter.yaml"]);
  expect(created.code).toBe(0);
  expect(created.stdout).toMatch(/^Filter +\{"required":\["id"\],"requird":\["x"\]\}$/m);
  expect(created.stderr).toMatch(/^Warning: .*requird/m);
  const id = /^ID +(\d+)$/m.exec(created.stdout)?.[1] ?? "";

  const refused = await run(["subscriptions", "update", id, "--filter", "-"], { input: '{"type": "strin"}' });
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toContain("stdin: /type: must be one of");
  const changed = await json(["subscriptions", "update", id, "--filter", "-"], {
    input: '{"requird": ["id"]}',
  });
  expect(changed).toMatchObject({
    data: { filter: { requird: ["id"] } },
    meta: { warnings: [{ pointer: "/requird" }] },
  });
  expect((await json(["subscriptions", "update", id, "--filter", "none"])).data).toMatchObject({
    filter: null,
  });
  const filterOf = async (...words: string[]) =>
    (await json<{ filter: unknown }>(["subscriptions", "update", id, ...words])).data.filter;
  expect(await filterOf("--filter", "country=FR", "--filter", "id=7")).toEqual({
    type: "object",
    properties: { country: { const: "FR" }, id: { const: 7 } },
    required: ["country", "id"],
  });
  expect(await filterOf("--filter", '{"required": ["id"]}')).toEqual({ required: ["id"] });
  await served.evreg.subscriptions.delete(Number(id));
});

test("a subscription can be created, shown, paused, resumed and deleted; its secret is printed once", async () => {
  const created = await run([
    ..."subscriptions create --application billing --subscription invoices --action order.created".split(" "),
    "--handler",
    HANDLER,
    "--max-retries",
    "3",
  ]);
  expect(created.code).toBe(0);
  const id = /^ID +(\d+)$/m.exec(created.stdout)?.[1] ?? "";
  const secret = /^Secret +(whsec_\S+)$/m.exec(created.stdout)?.[1] ?? "none";
  expect(created.stderr).toContain("shown only now");
  expect(created.stderr).not.toContain(secret);

  const shown = await run(["subscriptions", "get", id]);
  expect(shown.stdout).toMatch(/^Retries +3$/m);
  expect(shown.stdout).not.toContain("whsec_");
  expect((await json(["subscriptions", "update", id, "--no-active"])).data).toMatchObject({ active: false });
  expect((await json<unknown[]>("subscriptions --no-active")).data).toHaveLength(1);
  await run(["publish", "order.created", '{"id": 1}']);
  const resumed = await run(["subscriptions", "update", id, "--active"]);
  const [, replay = ""] =
    /^It has missed 1 event\. Send what was missed: evreg (subscriptions replay .*)$/m.exec(resumed.stderr) ??
    [];
  expect((await json([...replay.split(" "), "--dry-run"])).data).toMatchObject({ total: 1 });
  const paused = await run(["subscriptions", "update", id, "--no-active"]);
  expect(paused.stderr).toContain("It misses the events that are published from now on;");
  expect((await run(["subscriptions", "update", id, "--active"])).stderr).not.toContain("missed");
  expect((await json(["subscriptions", "update", id, "--active", "--max-retries", "0"])).data).toMatchObject({
    active: true,
    max_retries: 0,
  });
  expect((await run(["subscriptions", "delete", id])).stderr).toBe("Deleted.\n");
  expect(await run(["subscriptions", "get", id])).toMatchObject({ code: 3, stdout: "" });
  const empty = await run("subscriptions");
  expect(empty).toMatchObject({ code: 0, stdout: "" });
  expect(empty.stderr).toContain("evreg subscriptions create");
});

test("a token is printed once, listed without its value, and can be revoked", async () => {
  const created = await json<{ rowid: number; token: string }>(
    "tokens create deploy --scope read --scope publish:shop --expires 90d",
  );
  const { rowid, token } = created.data;
  expect(created.data).toMatchObject({
    scopes: ["read", "publish:shop"],
    expires_at: expect.stringMatching(/Z$/),
  });
  const listed = await run("tokens");
  expect(listed.stdout).toMatch(/deploy +read publish:shop/);
  expect(listed.stdout + listed.stderr).not.toContain(token);
  expect(await run(`tokens revoke ${rowid}`)).toMatchObject({ code: 0, stderr: "Revoked.\n" });
  expect(await run(`tokens revoke ${rowid}`)).toMatchObject({ code: 3 });
  expect(await run("tokens create x --scope everything")).toMatchObject({
    code: 2,
    stdout: "",
  });
});

test("colour is used on a terminal: not in a pipe, not with NO_COLOR, but when forced", async () => {
  const [piped, forced] = await Promise.all([
    run("actions", { env: { NO_COLOR: "" } }),
    run("actions", { env: { NO_COLOR: "", FORCE_COLOR: "1" } }),
  ]);
  expect(piped.stdout).not.toContain("\u001b");
  expect(forced.stdout).toContain("\u001b[1m");
});

test.skipIf(!existsSync("/dev/full"))("output that cannot be written is an error", async () => {
  await Promise.all(
    ["actions", "events"].map(async (words) => {
      const line = `exec "${process.execPath}" "${PROGRAM}" ${words} > /dev/full`;
      const child = spawn("/bin/sh", ["-c", line], { env: cleanEnv({ EVREG_DATA: data }) });
      let stderr = "";
      child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
      expect(await new Promise((resolve) => child.on("close", resolve)), words).toBe(1);
      expect(stderr).toMatch(/^Error: The output could not be written \(ENOSPC\).*\n$/);
    }),
  );
});

test("names and payloads cannot control the terminal", async () => {
  const evil = '{"id":2,"note":"\\u001b]0;gotcha\\u0007 and \u009b31m raw"}';
  const { data: event } = await served.evreg.events.publish({
    action: "order.shipped",
    payload: RawJson.fromText(evil),
  });
  const [record, list] = await Promise.all([run(`events get ${event.rowid}`), run("events")]);
  // oxlint-disable-next-line no-control-regex
  for (const { stdout } of [record, list]) expect(stdout).not.toMatch(/[\u001b\u0007\u009b]/);
  expect((await run(`events get ${event.rowid} --json`)).stdout).toContain(evil);
});

test("an incomplete table says so in a pipe too", async () => {
  const { evreg } = served;
  const event = { action: "order.shipped", payload: RawJson.fromValue({ id: 5 }) };
  await evreg.events.publishBatch([event, event, event]);
  const words = ["events", "--action", "order.shipped", "--limit", "2"];
  const [all, two, program] = await Promise.all([
    run("events --action order.shipped"),
    run(words),
    run([...words, "--output", "jsonl"]),
  ]);
  expect([all.stderr, program.stderr]).toEqual(["", ""]);
  expect(two.stderr).toMatch(
    /^2 of \d+ events shown\. Next page: evreg events --action order\.shipped --limit 2 --after \d+\n$/,
  );
});
