import { existsSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { COMMANDS } from "../../src/commands/index.ts";
import { startHarness, type Harness } from "../http/harness.ts";
import { commandLine, type Ending, useFolder } from "../support/command-line.ts";
import { register } from "../support/records.ts";

// The server is in this process; the commands are those of the built program.

const { folder, at, read, write } = useFolder();
let harness: Harness;
let admin: string;
let reader: string;
let settings: string;
let tests = 0;

beforeAll(async () => {
  harness = await startHarness();
  admin = await harness.token("admin");
  reader = await harness.token("read:shop");
  write("admin.token", `${admin}\n`);
  write("reader.token", reader);
  await register(harness.owner, "on.server");
});
afterAll(() => harness.close());
beforeEach(() => {
  settings = `settings-${++tests}`;
});

const add = (line: string): string => `context add ${line} --url ${harness.url}`;

/** Runs commands with the settings of this test; none may show a token. */
async function expectEach(endings: readonly Ending[]): Promise<void> {
  const { expectEach: expectAll } = commandLine(folder, { EVREG_CONFIG_DIR: at(settings) });
  for (const { stdout, stderr } of await expectAll(endings))
    expect(stdout + stderr).not.toMatch(/evreg_\w{20}/);
}

const documentOf = (data: unknown): string => `${JSON.stringify({ data })}\n`;

test("a context can be added, used, listed and removed; no token is ever shown", async () => {
  const { url } = harness;
  const [prod, reading] = ["prod", "reading"].map((name) => ({ name, url, has_token: true, in_use: false }));
  await expectEach([
    ["context", 0, "", /evreg context add NAME/],
    [add("prod --token-file admin.token --use"), 0, /^You are +admin\nOn +http:.+\nContext +prod\n/, ""],
    [add("prod --token-file admin.token"), 5, "", /--replace/],
    [add("reading --token-file reader.token"), 0, undefined, /evreg context use reading/],
    ["context", 0, /^prod +http:\S+ +kept +yes\nreading +http:\S+ +kept +-$/m],
    ["context use reading", 0, undefined, ""],
    ["context list --json", 0, documentOf([prod, { ...reading, in_use: true }])],
    ["context remove reading", 0, /^(?!.*Token)/s, "Removed, with its token; no context is in use now.\n"],
    ["context --json", 0, documentOf([prod])],
  ]);
});

test("a damaged context is named with what is wrong, hides no other, and can be removed", async () => {
  const bad = { name: "bad", url: null, has_token: null, in_use: false };
  const prod = { name: "prod", url: harness.url, has_token: true, in_use: false };
  const told = /^Warning: \S+bad\.json does not hold a context\. Remove it/;
  await expectEach([[add("prod --token-file admin.token"), 0]]);
  write(`${settings}/contexts/bad.json`, "{", 0o600);
  await expectEach([
    ["context", 0, /^bad +- +- +-\nprod +http/m, told],
    ["context --json", 0, documentOf([bad, prod])],
    ["context remove bad", 0, undefined, /Removed\.\n$/],
    ["context --json", 0, documentOf([prod])],
  ]);
});

test("a context that the server refuses is not saved, unless the check is turned off", async () => {
  write("wrong.token", `${admin.slice(0, -2)}xx`);
  write("two.token", `${admin}\n${reader}`);
  const held = /^Error: --token-file: two\.token must hold a token and nothing else/;
  const away = "context add away --url http://127.0.0.1:9";
  const insecure = "context add far --url http://events.example.com --token-file admin.token --no-check";
  const data = { name: "away", url: "http://127.0.0.1:9", has_token: false, in_use: false };
  await expectEach([
    [add("prod --token-file wrong.token"), 4, ""],
    [add("prod --token-file two.token"), 2, "", held],
    ["actions --token-file two.token", 2, "", held],
    [add("prod"), 4, ""],
    [away, 6, ""],
    [insecure, 2, "", /unencrypted.*\nTo allow it: EVREG_ALLOW_INSECURE_TOKEN=true\n$/s],
    [add("Prod --token-file admin.token"), 2, "", /lower-case/],
    [`${away} --no-check --json`, 0, documentOf(data)],
    ["context --json", 0, documentOf([data])],
  ]);
});

test("the token can come from stdin", async () => {
  await expectEach([[add("prod --token-file -"), 0, undefined, undefined, { input: `${admin}\n` }]]);
  expect(read(`${settings}/contexts/prod.json`)).toContain(admin);
});

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

test("flags win over variables, those over the file, that over the context in use, that over the default folder", async () => {
  const nowhere = "http://127.0.0.1:9";
  write("away.yaml", `remote: {url: "${nowhere}"}\n`);
  write("folder.yaml", "data: none-here\n");
  const list = "actions --json";
  const both = { EVREG_CONTEXT: "prod", EVREG_URL: nowhere };
  await expectEach([
    ends(add("prod --token-file admin.token --use"), 0),
    ends(`context add away --no-check --url ${nowhere}`, 0),
    ends(list, 0),
    ends(list, 6, { EVREG_URL: nowhere }),
    ends(list, 6, { EVREG_CONTEXT: "away" }),
    ends(list, 3, { EVREG_DATA: "none-here" }),
    ends(list, 3, { STATE_DIRECTORY: "/nonexistent/state" }),
    ends(`${list} --config away.yaml`, 6),
    ends(`${list} --config folder.yaml`, 3),
    ends(`${list} --config away.yaml`, 0, { EVREG_CONTEXT: "prod" }),
    ends(`${list} --context away`, 6),
    ends(`${list} --context prod`, 0, { EVREG_URL: nowhere }),
    ends(`${list} --context prod`, 0, { EVREG_CONTEXT: "away" }),
    ends(`${list} --url ${nowhere}`, 6, { EVREG_CONTEXT: "prod" }),
    ends(`${list} --data none-here`, 3),
    ends(list, 2, both, /EVREG_CONTEXT and EVREG_URL both name a server/),
    ends(list, 3, { EVREG_CONTEXT: "prd" }, /did you mean prod\?/),
    ends(`${list} --context prod --data x`, 2),
  ]);
  expect(existsSync(at(".evreg"))).toBe(false);
});

test("a typed token wins, then a typed context's own, then the environment's, then that of the context in use", async () => {
  write("token.yaml", `remote: {token: ${admin}}\n`, 0o600);
  const env = { EVREG_TOKEN: admin };
  await expectEach([
    [add("prod --token-file reader.token --use"), 0],
    ["whoami --json", 0, /"name":"read:shop"/],
    ["whoami --json", 0, /"name":"admin"/, "", { env }],
    ["whoami --json --context prod", 0, /"name":"read:shop"/, "", { env }],
    ["whoami --json --context prod --token-file admin.token", 0, /"name":"admin"/],
    // A file's token is for the address in the same file.
    ["whoami --json --config token.yaml", 0, /"name":"read:shop"/],
  ]);
});

test("a change by hand prints its context on stderr; a read or a script's change does not", async () => {
  const event = "publish on.server {}";
  const said = `On the context prod (${harness.url}).\n`;
  write("registry.yaml", "actions: []\n");
  await expectEach([
    [add("prod --token-file admin.token --use"), 0],
    ["apply -f registry.yaml --dry-run", 0, undefined, said],
    [event, 0, undefined, said],
    [`${event} --context prod`, 0, undefined, said],
    ["events", 0, undefined, ""],
    [`${event} --json`, 0, undefined, ""],
    [`${event} --url ${harness.url} --token-file admin.token`, 0, undefined, ""],
    ["publish on.server [] --json", 1, "", /^\{"error":/],
  ]);
});

test("each command that acts somewhere is known to change something or not", async () => {
  const writing =
    "actions:create actions:deprecate actions:retire actions:update apply deliveries:retry deliveries:skip listen open publish replays:cancel subscriptions:create subscriptions:delete subscriptions:replay subscriptions:rotate-secret subscriptions:test subscriptions:update tokens:create tokens:revoke trigger";
  const all = await Promise.all(
    Object.entries(COMMANDS).map(async ([id, load]) => [id, await load()] as const),
  );
  const found = all.flatMap(([id, command]) => ("writes" in command && command.writes === true ? [id] : []));
  expect(found.toSorted().join(" ")).toBe(writing);
});

test("a context's token is sent to its own address only", async () => {
  write("token-only.yaml", "remote: {allowInsecureToken: true}\n");
  write("cloned.yaml", `remote: {url: "${harness.url}", allowInsecureToken: true}\n`);
  await expectEach([
    [add("prod --token-file admin.token --use"), 0],
    ["whoami --json --config cloned.yaml", 4, ""],
    [`whoami --json --url ${harness.url}`, 4, ""],
    ["whoami --json", 4, "", undefined, { env: { EVREG_URL: harness.url } }],
    ["context add far --url http://events.example.com --no-check --use", 0],
    // Nor does a file that came along open the way for a token.
    ["whoami --json --config token-only.yaml --token-file admin.token", 2, "", /unencrypted/],
  ]);
});

/** The command that lists subscriptions by a token of that scope. */
async function listBy(scope: string): Promise<string> {
  const { data } = await harness.owner.tokens.create({ name: "hedge", scopes: [scope] });
  return `subscriptions --url ${harness.url} --token ${data.token}`;
}

test("a token for one application is not told that there are no subscriptions", async () => {
  const which =
    /^No subscriptions that this token may read\. Which applications it may read: evreg whoami --url /;
  await expectEach([
    [await listBy("read"), 0, "", /No subscriptions yet\. Create one: /],
    [await listBy("read:nobody"), 0, "", which],
  ]);
});

test("a missing context in use stops commands, but another can still be chosen", async () => {
  await expectEach([[add("prod --token-file admin.token"), 0]]);
  write(`${settings}/context-in-use`, "gone\n", 0o600);
  await expectEach([
    ["actions", 3, "", /no context "gone"/],
    ["context", 0, /^prod +http/m, /evreg context use --none/],
    ["context use --none", 0, undefined, "No context is in use.\n"],
    ["actions", 3, "", /no data folder/],
  ]);
});
