import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commandLine, type Ending } from "../support/command-line.ts";
import { startReceiver } from "../support/receiver.ts";
import { useServed } from "../support/served.ts";

let token: string;
const served = useServed(
  ({ evreg, token: first }) => {
    token = first;
    return evreg.actions.create({ action: "on.server", application: "shop", schemata: { type: "object" } });
  },
  { dev: false },
);
const { folder, data } = served;
/** Nothing names the data folder. */
const { run, json, expectEach } = commandLine(folder, {});

const SEEN = { code: 0, stdout: expect.stringContaining("on.server"), stderr: "" };

test("a command finds the server on its data folder, and the token in that folder", async () => {
  expect(await run(["actions", "--data", data])).toMatchObject(SEEN);
  expect(await run("actions", { env: { EVREG_DATA: data } })).toMatchObject(SEEN);
});

test("a server can be named by a flag, the environment or the configuration, with its token from each", async () => {
  const { url } = served.server;
  const config = join(folder, "remote.yaml");
  writeFileSync(config, `remote:\n  url: ${url}\n  token: ${token}\n`, { mode: 0o600 });
  writeFileSync(join(folder, "token.txt"), `${token}\n`);
  const elsewhere = { EVREG_URL: "http://127.0.0.1:9" };
  const outcomes = await Promise.all([
    run(["actions", "--url", url, "--token", token], { env: elsewhere }),
    run(["actions", "--url", url, "--token-file", "token.txt"]),
    run(["actions", "--url", url, "--token-file", "-"], { input: token }),
    run(["actions", "--url", url], { env: { EVREG_TOKEN: token } }),
    run("actions", { env: { EVREG_URL: url, EVREG_TOKEN: token } }),
    run(["actions", "--config", config]),
    run(["actions", "--data", data], { env: elsewhere }),
    // The token beside that address is for that address.
    run(["actions", "--data", data], { env: { ...elsewhere, EVREG_TOKEN: "evreg_for_elsewhere" } }),
  ]);
  for (const outcome of outcomes) expect.soft(outcome).toMatchObject(SEEN);
});

test("the environment wins over the configuration, whose token goes to its own server only", async () => {
  const text = `remote:\n  url: http://127.0.0.1:9\n  token: ${token}\n`;
  writeFileSync(join(folder, "other.yaml"), text, { mode: 0o600 });
  const { url } = served.server;
  await expectEach([
    ["actions --config other.yaml", 0, /on\.server/, "", { env: { EVREG_URL: url, EVREG_TOKEN: token } }],
    [`actions --config other.yaml --url ${url}`, 4, ""],
    ["actions --config other.yaml", 6, ""],
  ]);
});

test("a token in the environment is used for the server on the data folder, and refused by it if it is wrong", async () => {
  const env = { EVREG_DATA: data };
  await expectEach([
    ["whoami", 4, "", undefined, { env: { ...env, EVREG_TOKEN: "garbage" } }],
    ["whoami", 0, /bootstrap/, undefined, { env: { ...env, EVREG_TOKEN: token } }],
  ]);
});

test("no token, an invalid one and one too narrow end with 4 and what to do; no token is ever shown", async () => {
  const { data: narrow } = await json("tokens create reader --scope read --data data");
  const at = `--url ${served.server.url}`;
  const env = { EVREG_TOKEN: String(narrow["token"]) };
  const outcomes = await expectEach([
    [`actions ${at}`, 4, "", /--token-file FILE or EVREG_TOKEN/],
    [`actions ${at} --token ${token.slice(0, -3)}abc`, 4, ""],
    [`publish on.server {} ${at}`, 4, "", /publish/, { env }],
  ]);
  for (const { stderr } of outcomes) expect(stderr).not.toMatch(/evreg_\w{20}/);
});

test("with --wait, a token that may only publish publishes, and only the wait fails", async () => {
  const { data: narrow } = await json("tokens create publisher --scope publish --data data");
  const env = { EVREG_TOKEN: String(narrow["token"]) };
  // Not 4: a script would take that for a publish that was refused, and try again.
  await expectEach([
    [
      `publish on.server {} --wait --json --url ${served.server.url}`,
      1,
      /"meta":\{"outcome":"unknown"\}\}\n$/,
      /^Event (\d+) is published, so do not publish it again; .*needs the scope read.* evreg events deliveries \1 --url /,
      { env },
    ],
  ]);
});

test("an unreachable server ends with 6 and a next step", async () => {
  await expectEach([["actions --url http://127.0.0.1:9", 6, "", /evreg serve/]]);
});

test("without a server a command uses the data folder, and deliveries wait for a server", async () => {
  const local = join(folder, "local");
  const { run: inFolder, json: fromFolder } = commandLine(folder, {
    EVREG_DATA: local,
    EVREG_DELIVERY_ALLOW_HTTP: "true",
    EVREG_DELIVERY_ALLOW_NETWORKS: "127.0.0.0/8",
  });
  const receiver = await startReceiver();
  await fromFolder("actions create in.folder --application shop --schema -", {
    input: '{"type":"object"}',
  });
  await fromFolder([
    ..."subscriptions create --application billing --name s --action in.folder --handler".split(" "),
    receiver.url,
  ]);
  const stored = await inFolder(["publish", "in.folder", '{"n":1}']);
  expect(stored).toMatchObject({ code: 0 });
  expect(stored.stderr).toContain("evreg serve");
  expect(receiver.requests).toHaveLength(0);

  // What is due belongs to others too, and this shell's settings are not theirs.
  const words = "subscriptions replay 1 --from 2020-01-01 --status all --wait".split(" ");
  for (const refused of [
    await inFolder(["publish", "in.folder", '{"n":2}', "--wait"]),
    await inFolder(words),
  ]) {
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toMatch(/--wait needs a server.*Nothing was done.*evreg serve.*leave --wait out/);
  }
  expect(receiver.requests).toHaveLength(0);
  expect((await fromFolder<unknown[]>("deliveries")).data).toMatchObject([
    { event_id: 1, status: "pending" },
  ]);
  expect((await fromFolder<unknown[]>("replays")).data).toEqual([]);
  await receiver.close();
});

test("suggested commands act on the same target as the one typed", async () => {
  const at = ["--url", served.server.url, "--token", token];
  const missing = await run(["deliveries", "get", "99", ...at]);
  expect(missing.stderr).toContain(
    `See those there are: evreg deliveries --url ${served.server.url} --token TOKEN\n`,
  );
  expect(missing.stderr).not.toContain(token);
});

test("a command that only reads creates no data folder", async () => {
  await expectEach([
    ["events --data nowhere", 3, "", /no data folder .*nowhere.*evreg serve/],
    ["publish a {} --data nowhere", 3, "", /no data folder .*nowhere.*evreg serve/],
  ]);
  expect(existsSync(join(folder, "nowhere"))).toBe(false);
});

test("a command that only reads does not change a folder without data", async () => {
  const empty = join(folder, "empty");
  mkdirSync(empty);
  const told = /empty holds no data yet.*--data.*evreg serve.*evreg actions create/;
  const reads = "events,events get 1,actions,subscriptions,deliveries,replays,tokens,whoami,export".split(
    ",",
  );
  await expectEach(reads.map((read): Ending => [`${read} --data empty`, 3, "", told]));
  expect(readdirSync(empty)).toEqual([]);
  await expectEach([
    ["tokens create ci --scope read --data empty", 0],
    ["events --data empty", 0],
  ]);
});

test("a new data folder gets a token only where the folder is named", async () => {
  const words = ["tokens", "create", "ci", "--scope", "read"];
  const [nowhere, byFlag, byVariable] = ["default", "by-flag", "by-variable"].map((name) =>
    join(folder, name),
  );
  mkdirSync(nowhere!);
  const { run: inNowhere } = commandLine(nowhere!, {});
  const outcome = await inNowhere(words);
  expect(outcome).toMatchObject({ code: 3, stdout: "" });
  expect(outcome.stderr).toMatch(/no data folder .*\.evreg.*--data/);
  expect(existsSync(join(nowhere!, ".evreg"))).toBe(false);

  expect(await run([...words, "--data", byFlag!])).toMatchObject({ code: 0 });
  expect(await run(words, { env: { EVREG_DATA: byVariable! } })).toMatchObject({ code: 0 });
  expect([byFlag, byVariable].map((path) => existsSync(path!))).toEqual([true, true]);
});

test("a mistake in the configuration ends with 2 and names its place", async () => {
  writeFileSync(join(folder, "wrong.yaml"), "prot: 80\n");
  await expectEach([["actions --config wrong.yaml", 2, "", /wrong\.yaml.*prot/s]]);
});
