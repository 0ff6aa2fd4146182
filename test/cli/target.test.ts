import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { expect, test } from "vitest";
import { openLocal } from "../../src/app/server.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { commandLine, type Ending } from "../support/command-line.ts";
import { register } from "../support/records.ts";
import { configFor } from "../support/server.ts";
import { useServed } from "../support/served.ts";

const served = useServed(({ evreg }) => register(evreg, "on.server"), { dev: false });
const { folder, data, at, write } = served;
/** Nothing names the data folder. */
const { json, expectEach } = commandLine(folder, {});

const SEEN = /on\.server/;

test("a server is found by its data folder, a flag, the environment or the configuration, with its token from each", async () => {
  const { url } = served.server;
  const { token } = served;
  write("remote.yaml", `remote:\n  url: ${url}\n  token: ${token}\n`, 0o600);
  write("token.txt", `${token}\n`);
  const elsewhere = { EVREG_URL: "http://127.0.0.1:9" };
  await expectEach([
    ["actions --data data", 0, SEEN, ""],
    ["actions", 0, SEEN, "", { env: { EVREG_DATA: data } }],
    [`actions --url ${url} --token ${token}`, 0, SEEN, "", { env: elsewhere }],
    [`actions --url ${url} --token-file token.txt`, 0, SEEN, ""],
    [`actions --url ${url} --token-file -`, 0, SEEN, "", { input: token }],
    [`actions --url ${url}`, 0, SEEN, "", { env: { EVREG_TOKEN: token } }],
    ["actions", 0, SEEN, "", { env: { EVREG_URL: url, EVREG_TOKEN: token } }],
    ["actions --config remote.yaml", 0, SEEN, ""],
    ["actions --data data", 0, SEEN, "", { env: elsewhere }],
    // The token beside that address is for that address.
    ["actions --data data", 0, SEEN, "", { env: { ...elsewhere, EVREG_TOKEN: "evreg_for_elsewhere" } }],
    ["actions --data data", 0, SEEN, "", { env: { EVREG_TOKEN: token } }],
    ["actions --data data", 4, "", undefined, { env: { EVREG_TOKEN: "garbage" } }],
    ["actions --url http://127.0.0.1:9", 6, "", /evreg serve/],
  ]);
});

test("the environment wins over the configuration, whose token goes to its own server only", async () => {
  const { url } = served.server;
  const { token } = served;
  write("other.yaml", `remote:\n  url: http://127.0.0.1:9\n  token: ${token}\n`, 0o600);
  write("wrong.yaml", "prot: 80\n");
  await expectEach([
    ["actions --config other.yaml", 0, SEEN, "", { env: { EVREG_URL: url, EVREG_TOKEN: token } }],
    [`actions --config other.yaml --url ${url}`, 4, ""],
    ["actions --config other.yaml", 6, ""],
    ["actions --config wrong.yaml", 2, "", /wrong\.yaml.*prot/s],
  ]);
});

test("a folder that another command has is refused, and the configuration warned of once", async () => {
  const config = configFor(at("held"));
  const evreg = await openLocal({ command: "import", version: "", config, logger: silentLogger });
  write("open.yaml", "remote:\n  token: abc\n");
  const told = /^Warning: [^\n]*chmod 600 [^\n]*\nError: The data folder \S+held is in use by evreg import /;
  await expectEach([["actions --data held --config open.yaml", 5, "", told]]);
  await evreg.close();
});

test("no token, an invalid one and one too narrow end with 4 and what to do; no token is ever shown", async () => {
  const { data: narrow } = await json("tokens create reader --scope read --data data");
  const url = `--url ${served.server.url}`;
  const env = { EVREG_TOKEN: String(narrow["token"]) };
  const outcomes = await expectEach([
    [`actions ${url}`, 4, "", /--token-file FILE or EVREG_TOKEN/],
    [`actions ${url} --token ${served.token.slice(0, -3)}abc`, 4, ""],
    [`publish on.server {} ${url}`, 4, "", /publish/, { env }],
  ]);
  for (const { stderr } of outcomes) expect(stderr).not.toMatch(/evreg_\w{20}/);
});

test("with --wait, a token that may only publish publishes, and only the wait fails", async () => {
  const { data: narrow } = await json("tokens create publisher --scope publish --data data");
  const env = { EVREG_TOKEN: String(narrow["token"]) };
  const line = `publish on.server {} --wait --json --url ${served.server.url}`;
  const told =
    /^Event (\d+) is published, so do not publish it again; .*needs the scope read.* evreg deliveries list --event \1 --url /;
  // Not 4: a script would take that for a publish that was refused, and try again.
  await expectEach([[line, 1, /"meta":\{"outcome":"unknown"\}\}\n$/, told, { env }]]);
});

const CREATE = "actions create order.created --application shop --schema -";
const created: Ending = [CREATE, 0, undefined, undefined, { input: '{"type": "object"}' }];
const SUBSCRIBE =
  "subscriptions create --application billing --name invoices --action order.created --handler";

test("without a server a command uses the data folder, and what waits for a server is noted", async () => {
  const { json: fromFolder, expectEach: inFolder } = commandLine(folder, { EVREG_DATA: "local" });
  const waits = "What is to be delivered waits for a server on this data folder: evreg serve --dev\n";
  const bulk = /waits for a server on this data folder: evreg serve --dev/;
  // What is due belongs to others too, and this shell's settings are not theirs.
  const noWait = /--wait needs a server.*Nothing was done.*evreg serve.*leave --wait out/;
  const input = '{"action": "order.created", "payload": {}}';
  await inFolder([
    created,
    [`${SUBSCRIBE} https://example.com/`, 0],
    ["publish order.created {} --idempotency-key k", 0, undefined, waits],
    ["publish --batch -", 0, undefined, bulk, { input }],
    ["publish order.created {} --wait", 2, "", noWait],
  ]);
  const pending = { status: "pending" };
  expect((await fromFolder("deliveries")).data).toMatchObject([pending, pending]);
  expect((await fromFolder("replays")).data).toEqual([]);
  await inFolder([
    ["subscriptions update 1 --no-active", 0],
    ["subscriptions delete 1", 0, undefined, "Deleted; 2 deliveries that waited were cancelled.\n"],
  ]);
});

test("where a server without --dev has had the folder, that is the one to start", async () => {
  const { expectEach: inFolder } = commandLine(folder, { EVREG_DATA: "tokened" });
  await inFolder([created]);
  write("tokened/token", served.token, 0o600);
  const waits =
    "What is to be delivered waits for a server on this data folder: evreg serve --data tokened\n";
  await inFolder([
    ["publish order.created {} --data tokened", 0, undefined, waits],
    ["publish order.created {} --wait --data tokened", 2, "", /`evreg serve --data tokened`/],
  ]);
  // A restore brings tokens into a folder without that file.
  rmSync(at("tokened/token"));
  await inFolder([
    ["tokens create ops --scope admin --data tokened", 0],
    ["publish order.created {} --wait --data tokened", 2, "", /`evreg serve --data tokened`/],
  ]);
});

test("suggested commands act on the same target as the one typed", async () => {
  const { url } = served.server;
  const next = `See those there are: evreg deliveries --url ${url} --token TOKEN\n`;
  const told = `Error: There is no delivery 99.\n${next}`;
  await expectEach([[`deliveries get 99 --url ${url} --token ${served.token}`, 3, "", told]]);
});

const READS = "events,events get 1,actions,subscriptions,deliveries,replays,tokens,whoami,export".split(",");

test("a command that only reads creates no data folder, and does not change one without data", async () => {
  mkdirSync(at("empty"));
  const none = /no data folder .*nowhere.*evreg serve/;
  const told = /empty holds no data yet.*--data.*evreg serve.*evreg actions create/;
  await expectEach([
    ["events --data nowhere", 3, "", none],
    ["publish a {} --data nowhere", 3, "", none],
    ...READS.map((read): Ending => [`${read} --data empty`, 3, "", told]),
  ]);
  expect(existsSync(at("nowhere"))).toBe(false);
  expect(readdirSync(at("empty"))).toEqual([]);
  await expectEach([
    ["tokens create ci --scope read --data empty", 0],
    ["events --data empty", 0],
  ]);
});

test("a new data folder gets a token only where the folder is named", async () => {
  const create = "tokens create ci --scope read";
  await expectEach([
    [create, 3, "", /no data folder .*\.evreg.*--data/],
    [`${create} --data by-flag`, 0],
    [create, 0, undefined, undefined, { env: { EVREG_DATA: "by-variable" } }],
  ]);
  expect([".evreg", "by-flag", "by-variable"].map((name) => existsSync(at(name)))).toEqual([
    false,
    true,
    true,
  ]);
});
