import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { connect } from "../../src/client/client.ts";
import type { AuditedChange, AuditEntry } from "../../src/domain/audit.ts";
import type { Evreg } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { AUDITED_CHANGES } from "../../src/model/audit.ts";
import { commandLine } from "../support/command-line.ts";
import { temporaryFolder } from "../support/program.ts";
import { serveHere } from "../support/server.ts";

const folder = temporaryFolder();
afterAll(() => folder.remove());

/** Rowids of what there is to be changed. */
interface Records {
  /** Deliveries that wait for a retry. */
  readonly waiting: readonly number[];
  /** Of the record that the last command answered. */
  last: number;
  /** A paused subscription, which is made and changed. */
  paused: number;
}

/** The commands that make each change, in an order in which each can be done. */
const COMMANDS: readonly (readonly [AuditedChange, (records: Records) => string])[] = [
  ["action.created", () => "actions create a.made --application shop --schema -"],
  ["action.updated", () => "actions update a.made --mode none"],
  [
    "subscription.created",
    () =>
      "subscriptions create --application shop --subscription made --action a.base --mode pull --no-active",
  ],
  ["subscription.updated", ({ paused }) => `subscriptions update ${paused} --max-retries 3`],
  ["subscription.secret_rotated", ({ paused }) => `subscriptions rotate-secret ${paused}`],
  ["replay.started", ({ paused }) => `subscriptions replay ${paused} --from 2020-01-01 --status all`],
  ["replay.cancelled", ({ last }) => `replays cancel ${last}`],
  ["delivery.retried", ({ waiting }) => `deliveries retry ${waiting[0]}`],
  ["delivery.skipped", ({ waiting }) => `deliveries skip ${waiting[1]}`],
  ["subscription.deleted", ({ paused }) => `subscriptions delete ${paused}`],
  ["token.created", () => "tokens create made --scope read"],
  ["token.revoked", ({ last }) => `tokens revoke ${last}`],
];

/** Makes two deliveries that wait for a retry. */
async function prepare({ actions, events, subscriptions }: Evreg): Promise<Records> {
  await actions.create({ action: "a.base", application: "shop", schemata: {} });
  const base = { application: "shop", subscription: "base", action: "a.base" };
  const { data: pull } = await subscriptions.create({ ...base, mode: "pull", retry_schedule: [3_600_000] });
  const event = { action: "a.base", payload: RawJson.fromText("{}") };
  await events.publishBatch([event, event]);
  const { data: claimed } = await subscriptions.claim(pull.rowid, { max: 2, wait_ms: 0 });
  const results = claimed.map(({ lease }) => ({ lease, outcome: "failed", reason: "for now" }) as const);
  await subscriptions.finish(pull.rowid, { results });
  return { waiting: claimed.map(({ delivery_id }) => delivery_id), last: 0, paused: 0 };
}

/** Gives each command with these flags, and looks at what is kept of all. */
async function originsOf(records: Records, ...flags: readonly string[]): Promise<readonly object[]> {
  const { run } = commandLine(folder.path, {});
  const json = async <T>(line: string): Promise<T> => {
    const { code, stdout, stderr } = await run([...line.split(" "), ...flags, "--json"], { input: "{}" });
    expect(code, stderr).toBe(0);
    return (JSON.parse(stdout) as { data: T }).data;
  };
  for (const [change, command] of COMMANDS) {
    records.last = (await json<{ rowid: number }>(command(records))).rowid;
    if (change === "subscription.created") records.paused = records.last;
  }
  const kept = await json<readonly AuditEntry[]>(`audit --limit ${COMMANDS.length}`);
  return kept.map(({ change, by, address }) => ({ change, by, address })).toReversed();
}

function newFolder(name: string): string {
  const data = join(folder.path, name);
  mkdirSync(data, { mode: 0o700 });
  return data;
}

const changes = COMMANDS.map(([change]) => change);

test("each change that is kept is made by a command, but for the use of a secret by a claim", () => {
  const others: readonly AuditedChange[] = ["subscription.secret_used", "data.restored"];
  expect([...changes, ...others].toSorted()).toEqual([...AUDITED_CHANGES].toSorted());
});

test("the origin of each change at a server is the token's name and the address", async () => {
  const data = newFolder("token");
  const server = await serveHere(data);
  const tokenFile = join(data, "token");
  const evreg = connect({ url: server.url, token: readFileSync(tokenFile, "utf8").trim() });
  const flags = ["--url", server.url, "--token-file", tokenFile];
  const origin = { by: "bootstrap", address: "127.0.0.1" };
  expect(await originsOf(await prepare(evreg), ...flags)).toEqual(
    changes.map((change) => Object.assign({ change }, origin)),
  );
  await evreg.close();
  await server.stop();
});

test("the origin of each change on a data folder is local, without an address", async () => {
  const data = newFolder("commands");
  const server = await serveHere(data, { dev: true });
  const evreg = connect({ url: server.url });
  const records = await prepare(evreg);
  await evreg.actions.create({ action: "a.by-hand", application: "shop", schemata: {} });
  const [made] = (await evreg.audit.list()).data;
  expect(made).toMatchObject({ change: "action.created", by: "local", address: "127.0.0.1" });
  await evreg.close();
  await server.stop();
  const origin = { by: "local", address: null };
  expect(await originsOf(records, "--data", data)).toEqual(
    changes.map((change) => Object.assign({ change }, origin)),
  );
});
