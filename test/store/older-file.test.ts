import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { checkFile } from "../../src/store/libsql/files/file-tasks.ts";
import { MIGRATIONS } from "../../src/store/libsql/files/migrations.ts";
import { migrateFile } from "../../src/store/libsql/files/migrate.ts";
import { restore } from "../../src/store/libsql/files/restore.ts";
import { inspectMigrations, migrate } from "../../src/store/libsql/migration-status.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import { Connection } from "../../src/store/libsql/thread/connection.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { writeOlderFile } from "../support/older-file.ts";
import { testOwner } from "./owner.ts";
import { rawSql } from "./processes.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();

describe("a file of an older format", () => {
  it("is reported with what a migration would do, and not changed", async () => {
    const file = join(scratch.path, "evreg.db");
    writeOlderFile(file, 1);
    const before = readFileSync(file);
    const pending = MIGRATIONS.slice(1).map(({ version, name }) => ({ version, name }));
    const room = { needed_bytes: expect.any(Number) as number, free_bytes: expect.any(Number) as number };
    const status = { file, exists: true, current: 1, latest: MIGRATIONS.length, pending, room };
    expect(inspectMigrations(scratch.path)).toEqual(status);
    expect(await migrate(scratch.path, { dryRun: true })).toEqual({ ...status, applied: [] });
    expect(readdirSync(scratch.path)).toEqual(["evreg.db"]);
    expect(readFileSync(file).equals(before)).toBe(true);

    const folder = join(scratch.path, "restored");
    async function* content(): AsyncGenerator<Uint8Array> {
      yield await Promise.resolve(before);
    }
    const backup = {
      folder,
      name: "b.db",
      content: content(),
      encryption: undefined,
      force: false,
      nowMs: 1,
    };
    expect(await restore(backup)).toMatchObject({ form: 1, latest: MIGRATIONS.length });
    const store = await openLibsqlStore({ folder, owner: testOwner(), logger: silentLogger });
    await store.close();
    expect(inspectMigrations(folder)).toMatchObject({ current: MIGRATIONS.length, pending: [] });
  });
});

describe("a file from before there were counts", () => {
  it("gets them when it is opened, and keeps its events", async () => {
    const file = join(scratch.path, "evreg.db");
    writeOlderFile(
      file,
      1,
      "INSERT INTO action (action, application, revision, created_ms) VALUES ('a', 'x', 1, 1), ('b', 'x', 1, 1)",
      `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10000)
        INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
        SELECT n, 1 + (n % 10 = 0), 1, n, x'7b7d' FROM n`,
    );
    const store = await openLibsqlStore({
      folder: scratch.path,
      owner: testOwner(),
      logger: silentLogger,
    });
    const page = { order: "asc" as const, limit: 2, page: 451 };
    const { events, total } = await store.events.list({ ...page, action: "b" });
    expect([events.map(({ rowid }) => rowid), total]).toEqual([[9_010, 9_020], 1_000]);
    expect((await store.events.list({ ...page, fromMs: 4_001 })).total).toBe(6_000);
    await store.close();
    const counted = "SELECT sum(events) AS n FROM event_count WHERE action_id = 0";
    expect(rawSql(file, counted)).toEqual([{ n: 8_191 }]);
  });
});

describe("a file from before keys belonged to applications", () => {
  it("keeps its keys, each in the application of its action", async () => {
    const file = join(scratch.path, "evreg.db");
    writeOlderFile(
      file,
      20,
      "INSERT INTO action (action, application, revision, created_ms) VALUES ('a', 'x', 1, 1), ('b', 'y', 1, 1)",
      "INSERT INTO action_revision (action_id, revision, schemata, created_ms) VALUES (1, 1, '{}', 1), (2, 1, '{}', 1)",
      `INSERT INTO event (action_id, revision, timestamped_ms, payload, idempotency_key)
        VALUES (1, 1, 1, x'7b7d', 'k'), (1, 1, 1, x'7b7d', NULL), (2, 1, 1, x'7b7d', 'l')`,
    );
    const store = await openLibsqlStore({ folder: scratch.path, owner: testOwner(), logger: silentLogger });
    const publish = async (actionId: number, idempotencyKey: string): Promise<string | undefined> => {
      const event = { actionId, revision: 1, payload: Buffer.from("{}"), idempotencyKey };
      return (await store.events.record([event], 2))[0]?.kind;
    };
    expect(await publish(1, "k")).toBe("replayed");
    expect(await publish(2, "k")).toBe("recorded");
    expect(await publish(1, "l")).toBe("recorded");
    expect(await publish(2, "l")).toBe("replayed");
    await store.close();
    const scopes = "SELECT idempotency_key AS key, idempotency_application AS application FROM event";
    expect(rawSql(file, scopes)).toEqual([
      { key: "k", application: "x" },
      { key: null, application: null },
      { key: "l", application: "y" },
      { key: "k", application: "y" },
      { key: "l", application: "x" },
    ]);
    expect(await checkFile(file)).toMatchObject({ impossible: [] });
  });
});

const ONE_ACTION = "INSERT INTO action (action, application, revision, created_ms) VALUES ('a', 'x', 1, 1)";
const eventsWith = (...rowids: number[]): string =>
  `INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
    SELECT value, 1, 1, 1000 + value, x'7b7d' FROM json_each('${JSON.stringify(rowids)}')`;
const lastGiven = (last: number): string => `UPDATE sqlite_sequence SET seq = ${last} WHERE name = 'event'`;

describe("a file from before it was known which events were removed", () => {
  const RESTORED = 700_000_000;

  it.each([
    ["none of them", [eventsWith(1, 2, 3)], undefined],
    ["those at its beginning", [eventsWith(4, 5)], { event: 3, ms: 1_004 }],
    ["those around one that was held", [eventsWith(1, 51, 52)], { event: 50, ms: 1_051 }],
    [
      "all",
      [eventsWith(1), "DELETE FROM event", lastGiven(9)],
      { event: 9, ms: expect.any(Number) as number },
    ],
    ["those at its end", [eventsWith(1, 2), lastGiven(9)], { event: 9, ms: expect.any(Number) as number }],
    ["none, but has been restored", [eventsWith(1, 2, RESTORED, RESTORED + 1)], undefined],
    ["none, but has just been restored", [eventsWith(1, 2), lastGiven(RESTORED)], undefined],
    ["those before it was restored", [eventsWith(7, RESTORED)], { event: 6, ms: 1_007 }],
  ] as const)("lacks %s", async (_, statements, removed) => {
    writeOlderFile(join(scratch.path, "evreg.db"), 20, ONE_ACTION, ...statements);
    const store = await openLibsqlStore({ folder: scratch.path, owner: testOwner(), logger: silentLogger });
    expect((await store.events.bounds()).removed).toEqual(removed ?? { event: 0, ms: 0 });
    await store.close();
    expect(await checkFile(join(scratch.path, "evreg.db"))).toMatchObject({ impossible: [] });
  });
});

describe("a file from before there were checksums", () => {
  it("keeps its events, reports that they have no checksum, and gives one to each new event", async () => {
    const file = join(scratch.path, "evreg.db");
    writeOlderFile(
      file,
      10,
      "INSERT INTO action (action, application, revision, created_ms) VALUES ('a', 'x', 1, 1)",
      "INSERT INTO action_revision (action_id, revision, schemata, created_ms) VALUES (1, 1, '{}', 1)",
      "INSERT INTO event (action_id, revision, timestamped_ms, payload) VALUES (1, 1, 1, x'7b7d')",
    );
    expect(await checkFile(file)).toMatchObject({ form: 10, events_without_checksum: 1, impossible: [] });
    const store = await openLibsqlStore({ folder: scratch.path, owner: testOwner(), logger: silentLogger });
    await store.events.record([{ actionId: 1, revision: 1, payload: Buffer.from('{"n":1}') }], 2);
    const { events } = await store.events.list({ order: "asc", limit: 9, page: 1 });
    expect(events.map(({ payload }) => Buffer.from(payload!).toString())).toEqual(["{}", '{"n":1}']);
    await store.close();
    expect(await checkFile(file)).toMatchObject({
      events_without_checksum: 1,
      damaged_events: [],
      impossible: [],
    });
    expect(rawSql(file, "SELECT checksum IS NULL AS none FROM event")).toEqual([{ none: 1 }, { none: 0 }]);
  });
});

const small = mountSmallDisk(30);
afterAll(() => small?.remove());

describe.skipIf(small === undefined)(
  "a file of an older format on a small disk (a tmpfs of 30 MiB; skipped where none can be mounted)",
  () => {
    const folder = small?.path ?? "";
    const file = join(folder, "evreg.db");

    it("is not upgraded without the room that it says is needed, by a dry run too, and nothing is left", async () => {
      const filler =
        "CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(12000000)); DROP TABLE filler";
      writeOlderFile(file, 12, ...filler.split("; "));
      const before = readFileSync(file);
      const refusal = {
        code: "unavailable",
        message: expect.stringMatching(
          /no room .* from form 12 to \d+: .* takes up to 36 MB on its disk, and 1[89] MB are free\. Nothing was changed/,
        ) as unknown,
      };
      await expect(migrate(folder, { dryRun: true })).rejects.toMatchObject(refusal);
      await expect(migrate(folder)).rejects.toMatchObject(refusal);
      const opening = { folder, owner: testOwner(), logger: silentLogger };
      await expect(openLibsqlStore(opening)).rejects.toMatchObject(refusal);
      expect(readdirSync(folder)).toEqual(["evreg.db"]);
      expect(readFileSync(file).equals(before)).toBe(true);
      expect(inspectMigrations(folder).room?.needed_bytes).toBeGreaterThan(27_000_000);
    });

    it("leaves no part of a copy where the disk becomes full", () => {
      rmSync(file);
      writeOlderFile(file, 12);
      rawSql(file, "CREATE TABLE filler (x)", "INSERT INTO filler VALUES (randomblob(18000000))");
      const connection = Connection.open(file, () => undefined);
      expect(() => migrateFile(connection, file)).toThrow("the disk is full");
      connection.close();
      expect(readdirSync(folder).filter((name) => name.includes("before"))).toEqual([]);
    });
  },
);

describe("a subscription that was paused before there was an audit", () => {
  it.each([
    [
      "that had received events",
      "INSERT INTO delivery (event_id, subscription_id, state, attempt, created_ms, finished_ms) VALUES (1, 1, 2, 1, 10, 10), (2, 1, 2, 1, 20, 20)",
      3,
    ],
    ["that had received none", "SELECT 1", 5],
  ])("%s is listed with what it has missed", async (_, deliveries, missed) => {
    writeOlderFile(
      join(scratch.path, "evreg.db"),
      12,
      "INSERT INTO action (action, application, revision, created_ms) VALUES ('a.b', 'x', 1, 1), ('c.d', 'x', 1, 1)",
      "INSERT INTO action_revision (action_id, revision, schemata, created_ms) VALUES (1, 1, '{}', 1), (2, 1, '{}', 1)",
      `INSERT INTO subscription (application, subscription, action_id, handler, max_retries, active, created_ms)
        VALUES ('x', 's', 1, 'https://h.example/', 1, 0, 1)`,
      "INSERT INTO binding (action_id, subscription_id) VALUES (1, 1)",
      "INSERT INTO subscription_secret (subscription_id, secret, bearer) VALUES (1, 's', 'secret')",
      `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 5)
        INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload) SELECT n, 1, 1, 10 * n, x'7b7d' FROM n`,
      "INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload) VALUES (6, 2, 1, 60, x'7b7d')",
      deliveries,
    );
    const store = await openLibsqlStore({ folder: scratch.path, owner: testOwner(), logger: silentLogger });
    const { items } = await store.queue.attention({ nowMs: 100, limit: 10 });
    expect(items).toMatchObject([{ reason: "paused", subscription_id: 1, since: null, missed }]);
    await store.close();
  });
});
