import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { COMMANDS } from "../../src/commands/index.ts";
import { startHarness, type Harness } from "../http/harness.ts";
import { runProgram, temporaryFolder, type Outcome } from "../support/program.ts";
import { runMany, type CommandLine } from "../support/run-many.ts";

// The server is in this process; the commands are those of the built program.

const folder = temporaryFolder();
let harness: Harness;
let admin: string;
let reader: string;
let settings: string;
let tests = 0;

beforeAll(async () => {
  harness = await startHarness();
  admin = await harness.token("admin");
  reader = await harness.token("read:shop");
  writeFileSync(join(folder.path, "admin.token"), `${admin}\n`);
  writeFileSync(join(folder.path, "reader.token"), reader);
  await harness.owner.actions.create({
    action: "on.server",
    application: "shop",
    schemata: { type: "object" },
  });
});
afterAll(async () => {
  await harness.close();
  folder.remove();
});
beforeEach(() => {
  settings = join(folder.path, `settings-${++tests}`);
});

const words = (line: string): string[] => line.split(" ");
const add = (line: string): string[] => [...words(`context add ${line}`), "--url", harness.url];

async function run(...lines: CommandLine[]): Promise<Outcome[]> {
  const outcomes = await runMany(lines, { cwd: folder.path, env: { EVREG_CONFIG_DIR: settings } });
  for (const { stdout, stderr } of outcomes) expect(stdout + stderr).not.toMatch(/evreg_\w{20}/);
  return outcomes;
}

test("a context can be added, used, listed and removed; no token is ever shown", async () => {
  const [none, added, again, second, listed, chosen, json, gone, left] = await run(
    ["context"],
    add("prod --token-file admin.token --use"),
    add("prod --token-file admin.token"),
    add("reading --token-file reader.token"),
    ["context"],
    words("context use reading"),
    words("context list --json"),
    words("context remove reading"),
    words("context --json"),
  );
  expect(none).toMatchObject({
    code: 0,
    stdout: "",
    stderr: expect.stringContaining("evreg context add NAME"),
  });
  expect(added).toMatchObject({ code: 0, stderr: "" });
  expect(added?.stdout).toMatch(/^You are +admin\nOn +http:.+\nContext +prod\nYou may +admin: do everything/);
  expect(again).toMatchObject({ code: 5, stdout: "", stderr: expect.stringContaining("--replace") });
  expect(second).toMatchObject({ code: 0, stderr: expect.stringContaining("evreg context use reading") });
  expect(listed?.stdout).toMatch(/^prod +http:\S+ +kept +yes\nreading +http:\S+ +kept +-$/m);
  expect(chosen).toMatchObject({ code: 0, stderr: "" });
  const { url } = harness;
  const [prod, reading] = ["prod", "reading"].map((name) => ({ name, url, has_token: true, in_use: false }));
  expect(JSON.parse(json?.stdout ?? "")).toEqual({ data: [prod, { ...reading, in_use: true }] });
  expect(gone).toMatchObject({ code: 0, stderr: "Removed, with its token; no context is in use now.\n" });
  expect(gone?.stdout).not.toContain("Token");
  expect(JSON.parse(left?.stdout ?? "")).toEqual({ data: [prod] });
});

test("a damaged context is named with what is wrong, hides no other, and can be removed", async () => {
  mkdirSync(join(settings, "contexts"), { recursive: true, mode: 0o700 });
  writeFileSync(join(settings, "contexts", "bad.json"), "{", { mode: 0o600 });
  const [, listed, json, removed, left] = await run(
    add("prod --token-file admin.token"),
    ["context"],
    words("context --json"),
    words("context remove bad"),
    words("context --json"),
  );
  const bad = { name: "bad", url: null, has_token: null, in_use: false };
  const prod = { name: "prod", url: harness.url, has_token: true, in_use: false };
  expect(listed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^bad +- +- +-\nprod +http/m) });
  expect(listed?.stderr).toMatch(/^Warning: \S+bad\.json does not hold a context\. Remove it/);
  expect(JSON.parse(json?.stdout ?? "")).toEqual({ data: [bad, prod] });
  expect(removed).toMatchObject({ code: 0, stderr: expect.stringMatching(/Removed\.\n$/) });
  expect(JSON.parse(left?.stdout ?? "")).toEqual({ data: [prod] });
});

test("a context that the server refuses is not saved, unless the check is turned off", async () => {
  const away = words("context add away --url http://127.0.0.1:9");
  const insecure = words(
    "context add far --url http://events.example.com --token-file admin.token --no-check",
  );
  writeFileSync(join(folder.path, "wrong.token"), `${admin.slice(0, -2)}xx`);
  const [refused, without, silent, open, badName, kept, after] = await run(
    add("prod --token-file wrong.token"),
    add("prod"),
    away,
    insecure,
    add("Prod --token-file admin.token"),
    [...away, "--no-check", "--json"],
    words("context --json"),
  );
  expect(refused).toMatchObject({ code: 4, stdout: "" });
  expect(without).toMatchObject({ code: 4, stdout: "" });
  expect(silent).toMatchObject({ code: 6, stdout: "" });
  expect(open).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("unencrypted") });
  expect(open?.stderr).toMatch(/\nTo allow it: EVREG_ALLOW_INSECURE_TOKEN=true\n$/);
  expect(badName).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("lower-case") });
  const data = { name: "away", url: "http://127.0.0.1:9", has_token: false, in_use: false };
  expect(JSON.parse(kept?.stdout ?? "")).toEqual({ data });
  expect(JSON.parse(after?.stdout ?? "")).toEqual({ data: [data] });
});

test("the token can come from stdin", async () => {
  const { code } = await runProgram(add("prod --token-file -"), {
    cwd: folder.path,
    env: { EVREG_CONFIG_DIR: settings },
    input: `${admin}\n`,
  });
  expect(code).toBe(0);
  expect(readFileSync(join(settings, "contexts", "prod.json"), "utf8")).toContain(admin);
});

test("whoami prints whose the token is and where, and ends with 4 for an invalid one", async () => {
  const [table, json, bad] = await run(
    ["whoami", "--url", harness.url, "--token-file", "reader.token"],
    ["whoami", "--url", harness.url, "--token-file", "reader.token", "--json"],
    ["whoami", "--url", harness.url],
  );
  expect(table?.stdout.split("\n")).toEqual([
    expect.stringMatching(/^You are +read:shop$/),
    `On       ${harness.url}`,
    expect.stringMatching(/^You may +read:shop: read .*, of the application shop only$/),
    expect.stringMatching(/^Expires +never$/),
    expect.stringMatching(/^Retries +5 retries, the last 30 s after/),
    expect.stringMatching(/^Data +[0-9a-f]{32}$/),
    "",
  ]);
  const answer = await fetch(`${harness.url}/v1/whoami`, { headers: { authorization: `Bearer ${reader}` } });
  expect(json?.stdout).toBe(`${await answer.text()}\n`);
  expect(bad).toMatchObject({ code: 4, stdout: "" });
});

test("flags win over variables, those over the file, that over the context in use, that over the default folder", async () => {
  const nowhere = "http://127.0.0.1:9";
  const config = join(folder.path, "away.yaml");
  writeFileSync(config, `remote: {url: "${nowhere}"}\n`);
  writeFileSync(join(folder.path, "folder.yaml"), "data: none-here\n");
  const list = ["actions", "--json"];
  const outcomes = await run(
    [...add("prod --token-file admin.token --use")],
    [...words("context add away --no-check --url"), nowhere],
    list,
    [list, { EVREG_URL: nowhere }],
    [list, { EVREG_CONTEXT: "away" }],
    [list, { EVREG_DATA: "none-here" }],
    [list, { STATE_DIRECTORY: "/nonexistent/state" }],
    [...list, "--config", config],
    [...list, "--config", "folder.yaml"],
    [[...list, "--config", config], { EVREG_CONTEXT: "prod" }],
    [...list, "--context", "away"],
    [[...list, "--context", "prod"], { EVREG_URL: nowhere }],
    [[...list, "--context", "prod"], { EVREG_CONTEXT: "away" }],
    [[...list, "--url", nowhere], { EVREG_CONTEXT: "prod" }],
    [...list, "--data", "none-here"],
    [list, { EVREG_CONTEXT: "prod", EVREG_URL: nowhere }],
    [list, { EVREG_CONTEXT: "prd" }],
    [...list, "--context", "prod", "--data", "x"],
  );
  expect(outcomes.map(({ code }) => code)).toEqual([0, 0, 0, 6, 6, 3, 3, 6, 3, 0, 6, 0, 0, 6, 3, 2, 3, 2]);
  expect(outcomes.at(-3)?.stderr).toMatch(/EVREG_CONTEXT and EVREG_URL both name a server/);
  expect(outcomes.at(-2)?.stderr).toMatch(/did you mean prod\?/);
  expect(existsSync(join(folder.path, ".evreg"))).toBe(false);
});

test("a typed token wins, then a typed context's own, then the environment's, then that of the context in use", async () => {
  const who = ["whoami", "--json"];
  const config = join(folder.path, "token.yaml");
  writeFileSync(config, `remote: {token: ${admin}}\n`, { mode: 0o600 });
  const [, ...outcomes] = await run(
    add("prod --token-file reader.token --use"),
    who,
    [who, { EVREG_TOKEN: admin }],
    [[...who, "--context", "prod"], { EVREG_TOKEN: admin }],
    [...who, "--context", "prod", "--token-file", "admin.token"],
    // A file's token is for the address in the same file.
    [...who, "--config", config],
  );
  const names = outcomes.map(({ stdout }) => (JSON.parse(stdout) as { data: { name: string } }).data.name);
  expect(names).toEqual(["read:shop", "admin", "read:shop", "admin", "read:shop"]);
});

test("a change by hand prints its context on stderr; a read or a script's change does not", async () => {
  const event = words("publish on.server {}");
  const said = `On the context prod (${harness.url}).\n`;
  writeFileSync(join(folder.path, "registry.yaml"), "actions: []\n");
  const [, planned, changed, typed, looked, json, byUrl, refused] = await run(
    add("prod --token-file admin.token --use"),
    words("apply -f registry.yaml --dry-run"),
    event,
    [...event, "--context", "prod"],
    ["events"],
    [...event, "--json"],
    [...event, "--url", harness.url, "--token-file", "admin.token"],
    words("publish on.server [] --json"),
  );
  expect(planned).toMatchObject({ code: 0, stderr: expect.stringContaining(said) });
  expect(changed).toMatchObject({ code: 0, stderr: said });
  expect(typed).toMatchObject({ code: 0, stderr: said });
  expect(looked).toMatchObject({ code: 0, stderr: "" });
  expect(json).toMatchObject({ code: 0, stderr: "" });
  expect(byUrl).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(refused?.stderr ?? "")).toHaveProperty("error");
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
  const cloned = join(folder.path, "cloned.yaml");
  writeFileSync(join(folder.path, "token-only.yaml"), "remote: {allowInsecureToken: true}\n");
  writeFileSync(cloned, `remote: {url: "${harness.url}", allowInsecureToken: true}\n`);
  const who = ["whoami", "--json"];
  const insecure = words("context add far --url http://events.example.com --no-check --use");
  const [, byFile, byUrl, byVariable, , open] = await run(
    add("prod --token-file admin.token --use"),
    [...who, "--config", cloned],
    [...who, "--url", harness.url],
    [who, { EVREG_URL: harness.url }],
    insecure,
    // Nor does a file that came along open the way for a token.
    [...who, "--config", "token-only.yaml", "--token-file", "admin.token"],
  );
  for (const outcome of [byFile, byUrl, byVariable]) expect(outcome).toMatchObject({ code: 4, stdout: "" });
  expect(open).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("unencrypted") });
});

/** What a token of that scope is told of no subscriptions. */
async function toldOfNone(scope: "read" | "read:nobody"): Promise<string> {
  const { data } = await harness.owner.tokens.create({ name: "hedge", scopes: [scope] });
  const [listed] = await run(["subscriptions", "--url", harness.url, "--token", data.token]);
  return listed?.stderr ?? "";
}

test("a token for one application is not told that there are no subscriptions", async () => {
  expect(await toldOfNone("read")).toContain("No subscriptions yet. Create one: ");
  expect(await toldOfNone("read:nobody")).toMatch(
    /^No subscriptions that this token may read\. Which applications it may read: evreg whoami --url /,
  );
});

test("a missing context in use stops commands, but another can still be chosen", async () => {
  mkdirSync(settings, { mode: 0o700 });
  writeFileSync(join(settings, "context-in-use"), "gone\n", { mode: 0o600 });
  const [acting, listed, none, after] = await run(["actions"], ["context"], words("context use --none"), [
    "actions",
  ]);
  expect(acting).toMatchObject({ code: 3, stderr: expect.stringContaining('no context "gone"') });
  expect(listed).toMatchObject({ code: 0, stderr: expect.stringContaining("evreg context use --none") });
  expect(none).toMatchObject({ code: 0, stderr: "No context is in use.\n" });
  expect(after?.stderr).toContain("no data folder");
});
