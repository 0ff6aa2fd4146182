import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { SubscriptionWithSecret } from "../../src/domain/subscription.ts";
import { commandLine } from "../support/command-line.ts";
import { type Outcome, startProgram, temporaryFolder } from "../support/program.ts";
import { startReceiver, type Receiver } from "../support/receiver.ts";

// Everything the program says and keeps in a run is searched for what must not be in it.

const KEY = randomBytes(32);
const WRONG_KEY = randomBytes(32);
const BEARER = "bearer-value-of-the-handler";
const UNTAKEN = "bearer value that is refused";

let folder: ReturnType<typeof temporaryFolder>;
let receiver: Receiver;
beforeEach(async () => {
  folder = temporaryFolder();
  receiver = await startReceiver();
});
afterEach(async () => {
  await receiver.close();
  folder.remove();
});

test("no secret, bearer value or key is in a log, an error, a listing or the data folder", async () => {
  const data = join(folder.path, "data");
  mkdirSync(data);
  const keyFile = join(folder.path, "key");
  writeFileSync(keyFile, `${KEY.toString("base64")}\n`, { mode: 0o600 });
  const env = { EVREG_DATA: data, EVREG_ENCRYPTION_KEY_FILE: keyFile };
  const { run, json } = commandLine(folder.path, env);
  const said: Outcome[] = [];
  const say = async (line: string, options: Parameters<typeof run>[1] = {}): Promise<Outcome> => {
    const outcome = await run(line, options);
    said.push(outcome);
    return outcome;
  };

  const server = await startProgram(data, ["--dev", "--log-level", "debug"], env);
  await json("actions create a.b --application x --schema -", { input: '{"type":"object"}' });
  const { origin } = new URL(receiver.url);
  const create = "subscriptions create --application x --action a.b --max-retries 1";
  const plain = `${create} --subscription plain --handler ${origin}/a`;
  const created = await json<SubscriptionWithSecret>(plain);
  const withBearer = `${create} --subscription own --handler ${origin}/b --bearer-token-file -`;
  const own = await json<SubscriptionWithSecret>(withBearer, { input: `${BEARER}\n` });
  const rotated = await json<SubscriptionWithSecret>("subscriptions rotate-secret 1 --overlap 1h");
  expect(rotated.data).toMatchObject({ rowid: 1, bearer: "secret" });
  const secrets = [created, own, rotated].map((answer) => answer.data.secret);

  receiver.answer = ({ path }) => (path === "/a" ? { status: 500 } : {});
  await say("publish a.b {} --wait");
  expect(receiver.requests.map(({ headers }) => headers["authorization"])).toEqual(
    expect.arrayContaining([`Bearer ${created.data.secret}`, `Bearer ${BEARER}`]),
  );

  for (const line of [
    "subscriptions",
    "subscriptions --json",
    "subscriptions get 1",
    "subscriptions get 2 --output jsonl",
    "subscriptions update 2 --max-retries 2",
    "deliveries",
    "deliveries get 1 --json",
    "subscriptions rotate-secret 1",
    "subscriptions rotate-secret 9",
    "migrate --status",
  ]) {
    await say(line);
  }
  const refused = await say("subscriptions update 2 --bearer-token-file -", { input: UNTAKEN });
  expect(refused.code).toBe(1);
  for (const body of [
    JSON.stringify({ bearer_token: UNTAKEN }),
    JSON.stringify({ bearer_token: [BEARER], max_retries: "x" }),
    `{"bearer_token": "${BEARER}", "bearer_token": "${BEARER}"}`,
    `{"bearer_token": "${BEARER}" "unclosed`,
    JSON.stringify({ bearer: "none", bearer_token: BEARER }),
  ]) {
    const response = await fetch(`${server.url}/v1/subscriptions/2`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body,
    });
    expect(response.ok).toBe(false);
    said.push({ code: response.status, stdout: await response.text(), stderr: "" });
  }
  said.push(await server.end("SIGTERM"));

  const without = { EVREG_ENCRYPTION_KEY_FILE: "" };
  for (const [line, other, code] of [
    ["serve --port 0", { ...without, EVREG_ENCRYPTION_KEY: WRONG_KEY.toString("hex") }, 2],
    ["subscriptions", without, 2],
    ["migrate", without, 2],
    ["subscriptions", { ...without, EVREG_ENCRYPTION_KEY: `${KEY.toString("hex")}00` }, 2],
    ["subscriptions", { ...without, EVREG_ENCRYPTION_KEY_PREVIOUS: KEY.toString("hex") }, 2],
    ["subscriptions", { EVREG_ENCRYPTION_KEY: WRONG_KEY.toString("hex") }, 2],
    ["migrate", {}, 0],
    ["subscriptions", {}, 0],
  ] as const) {
    expect(await say(line, { env: other }), line).toMatchObject({ code });
  }

  const keys = [KEY, WRONG_KEY].flatMap((key) => [key.toString("base64"), key.toString("hex")]);
  const hidden = [...secrets, BEARER, UNTAKEN, ...keys];
  const told = said.map(({ stdout, stderr }) => stdout + stderr).join("\n");
  expect(told).toMatch(/attempt failed, will be retried/);
  expect(told).toMatch(/delivery failed for good/);
  expect(hidden.filter((text) => told.includes(text))).toEqual([]);
  const kept = readdirSync(data).map((name) => readFileSync(join(data, name), "latin1"));
  expect(hidden.filter((text) => kept.some((content) => content.includes(text)))).toEqual([]);
}, 60_000);

test("rotate-secret prints the new secret once, to stdout, and explains the overlap", async () => {
  const { expectEach } = commandLine(folder.path, { EVREG_DATA: join(folder.path, "data") });
  const create = "subscriptions create --application x --subscription y --action a.b --bearer none";
  const rotate = "subscriptions rotate-secret 1";
  const once = /^(?!.*whsec_.*whsec_).*^Old secret +valid until \d{4}-.*whsec_/ms;
  await expectEach([
    ["actions create a.b --application x --schema -", 0, undefined, undefined, { input: "{}" }],
    [`${create} --handler https://hooks.example.com/`, 0, /^Bearer +none$/m],
    [`${rotate} --overlap 2d`, 0, once, /^(?!.*whsec_)/s],
    [rotate, 5, "", /--expire-now/],
    [`${rotate} --expire-now`, 0, /^(?!.*Old secret)/s],
    [`${rotate} --overlap soon`, 2, ""],
    [[...rotate.split(" "), "--overlap", "15s ago"], 2, ""],
    [`${rotate} --overlap 31d`, 2, ""],
    [`${rotate} --overlap 1h --expire-now`, 2, ""],
    [`${rotate} --overlap 15s`, 0],
  ]);
}, 60_000);
