import { randomBytes } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openLocal } from "../../src/app/server.ts";
import type { NewSubscription } from "../../src/domain/subscription.ts";
import type { Evreg } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { move, type MoveReport, type NamedPlace } from "../../src/store/move/move.ts";
import { MOVED_TABLES } from "../../src/store/move/moved-tables.ts";
import { fileSql } from "../support/file-sql.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { ONE_ACTION, writeOlderFile } from "../support/older-file.ts";
import { type Cluster, sharedCluster } from "../support/postgres.ts";
import { openReceiver } from "../support/open-receiver.ts";
import { type Changes, configFor } from "../support/server.ts";
import { until } from "../support/until.ts";
import { dataFolder, LOOPBACK, refused, start } from "./setup.ts";

// Data are moved from a folder into a database and back.

const HOUR_MS = 3_600_000;
const KEY: Changes = { encryption: { key: randomBytes(32).toString("base64") } };
const OPEN: Changes = { auth: { mode: "off" }, delivery: LOOPBACK };

let cluster: Cluster;

beforeAll(async () => {
  cluster = await sharedCluster();
});

async function newDatabase(): Promise<string> {
  return cluster.url(await cluster.newDatabase());
}

async function inDatabase(url: string, statement: string): Promise<readonly Record<string, unknown>[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}

function placeOf(text: string): NamedPlace {
  return text.startsWith("postgres:") ? { place: "postgres://shown", url: text } : { place: text };
}

function run(from: string, to: string, signal = new AbortController().signal): Promise<MoveReport> {
  return move({ from: placeOf(from), to: placeOf(to), signal, onProgress: () => undefined });
}

/** Opens a folder without a server for a while. */
async function local<T>(
  data: string,
  act: (evreg: Evreg) => Promise<T>,
  changes: Changes = {},
  clock: Clock = systemClock,
): Promise<T> {
  const config = configFor(data, { ...OPEN, ...KEY, ...changes });
  const evreg = await openLocal({ config, version: "1", logger: silentLogger, command: "test", clock });
  try {
    return await act(evreg);
  } finally {
    await evreg.close();
  }
}

const event = (value: object, more: object = {}) => ({
  action: "order.placed",
  payload: RawJson.fromValue(value),
  ...more,
});

let filled: string | undefined;
afterAll(() => rmSync(filled!, { recursive: true }));

/** A folder that has rows in every table, all of them made by those who use evreg. Each is a copy of one. */
async function filledFolder(): Promise<string> {
  if (filled === undefined) {
    const data = await fill();
    filled = mkdtempSync(join(tmpdir(), "evreg-filled-"));
    cpSync(data, filled, { recursive: true });
  }
  const data = dataFolder();
  cpSync(filled, data, { recursive: true });
  return data;
}

async function fill(): Promise<string> {
  const data = dataFolder();
  await local(
    data,
    async (evreg) => {
      await evreg.actions.create({
        action: "order.placed",
        application: "shop",
        schemata: { type: "object" },
      });
      await evreg.events.publish(event({ n: "old" }, { idempotency_key: "once" }));
    },
    {},
    new ManualClock(Date.now() - 5 * HOUR_MS),
  );
  const server = await start(data, { ...OPEN, ...KEY, retention: { events: HOUR_MS } });
  const { evreg } = server;
  await until("the old one to be gone", async () => (await evreg.events.list()).meta.total === 0);
  const receiver = await openReceiver();
  receiver.answer = () => ({ status: 500, body: Buffer.from([0x00, 0xff, 0x0a, 0x5c, 0x27]) });
  const schemata = { type: "object", description: "„ö\\ö“ 🦊\u2028", properties: { n: {} } };
  await evreg.actions.update("order.placed", { schemata });
  const subscribe = async (subscription: string, more: Partial<NewSubscription>): Promise<number> => {
    const names = { application: "billing", action: "order.placed", subscription };
    return (await evreg.subscriptions.create({ ...names, ...more })).data.rowid;
  };
  const { url: handler } = receiver;
  await subscribe("failing", { handler, max_retries: 0 });
  await subscribe("waiting", { handler, retry_schedule: [HOUR_MS], ordered: { key: "/n" } });
  const filter = { not: { properties: { n: { const: "\u0000" } }, required: ["n"] } };
  const pulled = await subscribe("pulled", { mode: "pull", filter });
  await subscribe("refused", { handler: "http://127.0.0.1:9/", max_retries: 0 });
  const paused = await subscribe("paused", { handler, active: false, bearer_token: "a-bearer-of-its-own" });
  await evreg.subscriptions.delete(await subscribe("gone", { handler }));
  await evreg.subscriptions.rotateSecret(paused, {});
  await evreg.tokens.create({ name: "reader", scopes: ["read"] });
  await evreg.events.publish(event({ n: 1 }, { idempotency_key: "once" }));
  await evreg.events.publishBatch([event({ n: 'ö"\\🦊' }), event({ n: 1 }), event({ n: "\u0000" })]);
  await until("attempts to fail", async () => {
    return (await evreg.deliveries.list({ status: "failed" })).data.length === 8;
  });
  await evreg.replays.start(paused, { from: "2020-01-01T00:00:00Z", status: "missed" });
  await evreg.subscriptions.claim(pulled, { max: 1, lease_ms: 600_000, consumer: "one" });
  await server.stop();
  // By a clock that was set back.
  await local(
    data,
    (one) => one.events.publish(event({ n: 2 })),
    {},
    new ManualClock(Date.now() - HOUR_MS / 2),
  );
  return data;
}

function fileOf(data: string, name = /^evreg\.db$/): string {
  return join(
    data,
    readdirSync(data).find((one) => name.test(one))!,
  );
}

const MOVED_AWAY = /^evreg\.db\.moved-\w+$/;

/** All that a data file holds, the numbers that it gave included. */
function contentOf(file: string): Readonly<Record<string, unknown>> {
  const tables = [...MOVED_TABLES.map(({ name }) => name), "sqlite_sequence"];
  const rowsOf = (table: string): readonly string[] =>
    fileSql(file, `SELECT * FROM ${table}`)
      .map((row) =>
        JSON.stringify(
          Object.values(row).map((cell) =>
            cell instanceof Uint8Array ? Buffer.from(cell).toString("hex") : cell,
          ),
        ),
      )
      .toSorted();
  return Object.fromEntries(tables.map((table) => [table, rowsOf(table)]));
}

/** All that can be listed of what a server has. */
async function listsOf(evreg: Evreg): Promise<object> {
  const { data: subscriptions } = await evreg.subscriptions.list();
  const { data: deliveries } = await evreg.deliveries.list();
  return {
    actions: await evreg.actions.list(),
    revisions: await evreg.actions.revisions("order.placed"),
    events: (await evreg.events.list()).data.map((one) => [one, one.payload?.text()]),
    subscriptions,
    deliveries,
    attempts: await Promise.all(deliveries.map(({ rowid }) => evreg.deliveries.get(rowid))),
    replays: await evreg.replays.list(),
    tokens: await evreg.tokens.list(),
    audit: await evreg.audit.list(),
  };
}

/** A folder with rows in every table is moved into a database and back, and each step is cut off or repeated. */
describe("a move there and back", () => {
  const parent = mkdtempSync(join(tmpdir(), "evreg-moved-"));
  const [data, back] = [join(parent, "data"), join(parent, "back")];
  let url: string;
  let before: object;
  let there: MoveReport;

  afterAll(() => rmSync(parent, { recursive: true }));

  test("ends before its next chunk where it is interrupted", async () => {
    cpSync(await filledFolder(), data, { recursive: true });
    url = await newDatabase();
    before = contentOf(fileOf(data));
    await expect(run(data, url, AbortSignal.abort())).rejects.toMatchObject({ code: "unavailable" });
  });

  test("takes everything into a database, and is run again where it was cut off at its very end", async () => {
    for (const [table, found] of Object.entries(before)) expect.soft(found, table).not.toEqual([]);
    there = await run(data, url);
    expect(there).toMatchObject({ finished: true, kept: fileOf(data, MOVED_AWAY) });
    await inDatabase(url, "ALTER SCHEMA evreg RENAME TO arriving_evreg");
    const { kept, sha256 } = there;
    expect(await run(data, url)).toMatchObject({ finished: true, changed: 0, kept, sha256 });
  });

  test("is refused for what was moved away before", async () => {
    await refused(run(data, url), "conflict", "moved away already");
    await refused(run(data, await newDatabase()), "conflict", "moved away already");
  });

  test("takes everything back, with the numbers that were given, and is run again as well", async () => {
    const same = { finished: true, data_id: there.data_id, sha256: there.sha256 };
    const { kept, ...again } = await run(url, back);
    expect(again).toMatchObject(same);
    renameSync(join(back, "evreg.db"), join(back, "evreg.db.arriving"));
    expect(await run(url, back)).toMatchObject({ ...same, changed: 0, kept });
    expect(contentOf(fileOf(back))).toEqual(before);
    expect(contentOf(fileOf(data, MOVED_AWAY))).toEqual(before);
    const other = join(parent, "other");
    await refused(run(url, other), "conflict", "moved away already");
    expect(readdirSync(other)).toEqual([]);
  });

  test("leaves what was moved away to be served again once it has its name back", async () => {
    await refused(start(data, { ...OPEN, ...KEY }), "unavailable", `rename ${there.kept!} to evreg.db`);
    renameSync(there.kept!, join(data, "evreg.db"));
    const server = await start(data, { ...OPEN, ...KEY });
    expect((await server.evreg.events.list()).meta.total).toBe(5);
  });
});

describe("a move", () => {
  test("takes payloads of many bytes", async () => {
    const data = dataFolder();
    await local(data, async (evreg) => {
      await evreg.actions.create({
        action: "order.placed",
        application: "shop",
        schemata: { type: "object" },
      });
      for (let n = 0; n < 4; n += 1) await evreg.events.publish(event({ n, text: "ö".repeat(300_000 + n) }));
    });
    const before = contentOf(fileOf(data));
    const url = await newDatabase();
    const { sha256 } = await run(data, url);
    const back = join(dirname(data), "back");
    expect(await run(url, back)).toMatchObject({ finished: true, events: 4, sha256 });
    expect(contentOf(fileOf(back))).toEqual(before);
  });

  test("shows callers the same, and gives the next numbers", async () => {
    const data = await filledFolder();
    const before = await local(data, listsOf);
    const url = await newDatabase();
    await run(data, url);
    const place = dataFolder();
    await expect(start(place, { ...OPEN, database: { url } })).rejects.toMatchObject({
      message: expect.stringContaining("no key was given") as string,
    });
    await local(
      place,
      async (evreg) => {
        expect(await listsOf(evreg)).toEqual(before);
        const names = { action: "order.paid", application: "shop", schemata: {} };
        const { data: created } = await evreg.actions.create(names);
        const file = fileOf(data, MOVED_AWAY);
        const [last] = fileSql(file, "SELECT seq FROM sqlite_sequence WHERE name = 'action'");
        expect(created.rowid).toBe(Number(last!["seq"]) + 1);
        expect(await evreg.events.publish(event({ n: 3 }))).toMatchObject({ data: { rowid: 7 } });
        const again = await evreg.events.publish(event({ n: 1 }, { idempotency_key: "once" }));
        expect(again).toMatchObject({ data: { rowid: 2 } });
      },
      { database: { url } },
    );
  });
});

/** What `evreg backup` writes. */
async function backupOf(data: string): Promise<string> {
  const path = join(dirname(data), "backup.db");
  await local(data, async (evreg) => {
    const made = await evreg.backup();
    const pieces: Uint8Array[] = [];
    for await (const piece of made.content()) pieces.push(piece);
    writeFileSync(path, Buffer.concat(pieces));
    await made.close();
  });
  return path;
}

test("a second move copies what has changed since, removes what is gone, and puts right what somebody changed", async () => {
  const data = await filledFolder();
  const url = await newDatabase();
  const backup = await backupOf(data);
  const first = await run(backup, url);
  expect(first).toMatchObject({ finished: false, kept: null });
  expect(await run(backup, url)).toMatchObject({ finished: false, changed: 0, sha256: first.sha256 });
  await inDatabase(url, "UPDATE arriving_evreg.event SET payload = 'x' WHERE rowid = 6");
  expect(await run(backup, url)).toMatchObject({ finished: false, changed: 1, sha256: first.sha256 });

  await local(data, async ({ subscriptions }) => {
    for (const { rowid } of (await subscriptions.list()).data) await subscriptions.delete(rowid);
  });
  // Others are gone, and one of them had a key that is used again.
  const clock = new ManualClock(Date.now() + 2 * HOUR_MS);
  const expiring = await start(data, { ...OPEN, ...KEY, retention: { events: HOUR_MS } }, { clock });
  await until("the others to be gone", async () => {
    await clock.advance(1_000);
    return (await expiring.evreg.events.list()).meta.total === 0;
  });
  await expiring.evreg.events.publish(event({ n: 7 }, { idempotency_key: "once" }));
  await expiring.stop();
  const last = await run(data, url);
  expect(last).toMatchObject({ finished: true, events: 1 });
  const back = join(dirname(data), "back");
  expect(await run(url, back)).toMatchObject({ sha256: last.sha256 });
  expect(contentOf(fileOf(back))).toEqual(contentOf(fileOf(data, MOVED_AWAY)));
});

test("what a server has in a database is moved while it goes on, and the rest once it has stopped", async () => {
  const url = await newDatabase();
  const node = dataFolder();
  const server = await start(node, { ...OPEN, database: { url } });
  await server.evreg.actions.create({ action: "order.placed", application: "shop", schemata: {} });
  await server.evreg.events.publish(event({ n: 1 }));
  const folder = join(dataFolder(), "its 'ö' \\x?");
  expect(await run(url, folder)).toMatchObject({ finished: false, events: 1 });
  await refused(start(folder, OPEN), "unavailable", "has not ended");
  await server.evreg.events.publish(event({ n: 2 }));
  await server.stop();
  expect(await run(url, folder)).toMatchObject({ finished: true, events: 2 });
  await refused(
    start(node, { ...OPEN, database: { url } }),
    "unavailable",
    "were moved into a data folder by",
  );
  const moved = await start(folder, OPEN);
  expect((await moved.evreg.events.list()).meta.total).toBe(2);
});

test("a move ends where another one into the same database has begun since", async () => {
  const data = await filledFolder();
  const url = await newDatabase();
  const backup = await backupOf(data);
  await run(backup, url);
  const client = new Client({ connectionString: url });
  await client.connect();
  const waiting = async (): Promise<number> => {
    const text =
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    return Number((await inDatabase(url, text))[0]!["n"]);
  };
  // The first one waits in the middle of its tables, and the other one for it.
  await client.query("BEGIN; LOCK TABLE arriving_evreg.token");
  const first = refused(run(backup, url), "conflict", "was begun since");
  await until("the first one to wait", async () => (await waiting()) === 1);
  const other = run(data, url);
  await until("the other one to wait", async () => (await waiting()) > 1);
  await client.query("COMMIT");
  const [, done] = await Promise.all([first, other]);
  expect(done).toMatchObject({ finished: true });
  expect((await client.query("SELECT FROM evreg.node")).rows).toEqual([]);
  await client.end();
});

describe("a move is refused", () => {
  test("from a folder that a server has", async () => {
    const data = dataFolder();
    await start(data, OPEN);
    await refused(run(data, await newDatabase()), "conflict", "evreg backup FILE");
  });

  test("to a place that has data", async () => {
    const data = await filledFolder();
    const url = cluster.url(await cluster.emptyStore());
    await refused(run(data, url), "conflict", "has data of evreg already");
    await refused(run(url, data), "conflict", "has data already");
  });

  test("to a place in which a move of other data was begun", async () => {
    const [one, other] = [await filledFolder(), dataFolder()];
    await local(other, (evreg) => evreg.actions.create({ action: "a", application: "shop", schemata: {} }));
    const url = await newDatabase();
    await run(await backupOf(one), url);
    await refused(run(other, url), "conflict", "a move of other data was begun");
    await inDatabase(url, "DROP SCHEMA arriving_evreg CASCADE");
    expect(await run(other, url)).toMatchObject({ finished: true });
  });

  test("from where there is nothing, or something else", async () => {
    const [empty, url] = [dataFolder(), await newDatabase()];
    await refused(run(empty, url), "not_found", "no folder or file");
    mkdirSync(empty);
    await refused(run(empty, url), "not_found", "holds no data");
    await refused(run(url, empty), "not_found", "holds no data");
    writeFileSync(join(empty, "other.db"), "something else");
    await refused(run(join(empty, "other.db"), url), "invalid", "is no data file");
    writeOlderFile(join(empty, "evreg.db"), 21, ONE_ACTION);
    await refused(run(empty, url), "usage", "evreg migrate");
    await refused(run(cluster.url("nowhere"), empty), "usage", "no such database");
    expect(readdirSync(empty)).toEqual(["evreg.db", "other.db"]);
  });

  test("for rows that the new place cannot hold", async () => {
    const data = await filledFolder();
    fileSql(
      fileOf(data),
      "UPDATE action SET application = CAST(x'c3' AS TEXT) WHERE action = 'order.placed'",
      "SELECT 1",
    );
    await refused(run(data, await newDatabase()), "invalid", "the table action");
  });
});
