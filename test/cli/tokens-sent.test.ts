import { existsSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startHarness, type Harness } from "../http/harness.ts";
import { commandLine, type Ending, useFolder } from "../support/command-line.ts";
import { register } from "../support/records.ts";

// Where a command acts, and which token it sends there. The server is in this process; the commands are those of the built
// program.

const { folder, at, write } = useFolder();
let harness: Harness;
let admin: string;
let reader: string;

beforeAll(async () => {
  harness = await startHarness();
  admin = await harness.token("admin");
  reader = await harness.token("read:shop");
  write("admin.token", `${admin}\n`);
  write("reader.token", reader);
  await register(harness.owner, "on.server");
});
afterAll(() => harness.close());

/** None of the commands may show a token. */
async function expectEach(endings: readonly Ending[]): Promise<void> {
  for (const { stdout, stderr } of await commandLine(folder, {}).expectEach(endings))
    expect(stdout + stderr).not.toMatch(/evreg_\w{20}/);
}

test("whoami prints whose the token is and where, and ends with 4 for an invalid one", async () => {
  const answer = await fetch(`${harness.url}/v1/whoami`, { headers: { authorization: `Bearer ${reader}` } });
  const table = [
    "You are +read:shop",
    `On       ${harness.url}`,
    "You may +read:shop: read .*, of the application shop only",
    "Expires +never",
    "Retries +5 retries, the last 30 s after.*",
    "Data +[0-9a-f]{32}",
  ];
  const whoami = `whoami --url ${harness.url}`;
  await expectEach([
    [`${whoami} --token-file reader.token`, 0, new RegExp(`^${table.join("\n")}\n$`)],
    [`${whoami} --token-file reader.token --json`, 0, `${await answer.text()}\n`],
    [whoami, 4, ""],
  ]);
});

/** How a command ends with these variables. */
function ends(line: string, code: number, env: Record<string, string> = {}, told?: RegExp): Ending {
  return [line, code, undefined, told, { env }];
}

test("a flag wins over EVREG_URL, that over the file, that over the data folder", async () => {
  const nowhere = "http://127.0.0.1:9";
  write("away.yaml", `remote: {url: "${nowhere}"}\n`);
  write("prod.yaml", `remote: {url: "${harness.url}", token: ${admin}}\n`, 0o600);
  write("folder.yaml", "data: none-here\n");
  const list = "actions --json";
  const prod = { EVREG_URL: harness.url, EVREG_TOKEN_FILE: "admin.token" };
  await expectEach([
    ends(list, 0, prod),
    ends(list, 0, { ...prod, EVREG_DATA: "none-here" }),
    ends(list, 3, { EVREG_DATA: "none-here" }),
    ends(list, 3, { STATE_DIRECTORY: "/nonexistent/state" }),
    ends(`${list} --config prod.yaml`, 0),
    ends(list, 0, { EVREG_CONFIG: "prod.yaml" }),
    ends(`${list} --config away.yaml`, 0, prod),
    ends(`${list} --config away.yaml`, 6),
    ends(`${list} --config folder.yaml`, 3),
    ends(`${list} --url ${nowhere}`, 6, prod),
    ends(`${list} --data none-here`, 3, prod),
    ends(`${list} --url ${nowhere} --data x`, 2),
    ends(list, 2, { EVREG_CONTEXT: "prod" }, /EVREG_CONTEXT: this variable means nothing to evreg; unset it/),
  ]);
  expect(existsSync(at(".evreg"))).toBe(false);
});

test("a typed token wins over the environment's, that over the file's, which goes only to the address beside it", async () => {
  write("reader.yaml", `remote: {url: "${harness.url}", token: ${reader}}\n`, 0o600);
  write("token.yaml", `remote: {token: ${admin}, allowInsecureToken: true}\n`, 0o600);
  write("two.token", `${admin}\n${reader}`);
  const env = { EVREG_TOKEN: admin };
  const ask = "whoami --json --config";
  const held = /^Error: --token-file: two\.token must hold a token and nothing else/;
  await expectEach([
    [`${ask} reader.yaml`, 0, /"name":"read:shop"/],
    [`${ask} reader.yaml`, 0, /"name":"admin"/, "", { env }],
    [`${ask} reader.yaml --token-file reader.token`, 0, /"name":"read:shop"/, "", { env }],
    [`${ask} reader.yaml --token-file -`, 0, /"name":"admin"/, "", { input: `${admin}\n` }],
    [`${ask} token.yaml --url ${harness.url}`, 4, ""],
    [`${ask} token.yaml`, 4, "", undefined, { env: { EVREG_URL: harness.url } }],
    ["whoami --token-file two.token", 2, "", held],
    // Nor does a file open the way for a token to another address than its own.
    [`${ask} token.yaml --url http://h.example --token-file admin.token`, 2, "", /unencrypted/],
  ]);
});

/** The command that lists subscriptions by a token of that scope. */
async function listBy(scope: string): Promise<string> {
  const { data } = await harness.owner.tokens.create({ name: "hedge", scopes: [scope] });
  return `subscriptions --url ${harness.url} --token ${data.token}`;
}

test("an empty listing of a server says that there may be more", async () => {
  const words =
    /^No subscriptions yet\. Create one: .*\nThere may be more than you may see: evreg whoami --url /;
  for (const scope of ["read", "read:nobody"]) await expectEach([[await listBy(scope), 0, "", words]]);
});
