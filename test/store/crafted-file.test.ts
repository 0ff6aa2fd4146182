import { ConnectionPool } from "@libsql/client/sqlite3";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeAll, describe, expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { type Examined, examineFile } from "../../src/store/libsql/files/closed-file.ts";
import { schemaDigest } from "../../src/store/libsql/files/migrate.ts";
import { MIGRATIONS } from "../../src/store/libsql/files/migrations.ts";
import { restore, type Restored } from "../../src/store/libsql/files/restore.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import { Statements } from "../../src/store/libsql/thread/sql.ts";
import type { Store } from "../../src/store/store.ts";
import { claimRequest } from "../support/claim-request.ts";
import { testOwner } from "./owner.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const NOW = Date.parse("2026-03-01T12:00:00.000Z");
const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

/** A data file with a row or two in most tables. */
let good: Buffer;
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), "evreg-good-"));
  const store = await open(folder);
  const { rowid } = await store.catalog.createAction({ action: "a.b", application: "x", schemata: {} }, NOW);
  await store.tokens.create({ name: "t", scopes: ["admin"], hash: "a".repeat(64) }, NOW);
  const handler = "https://h.example/";
  const subscription = { application: "x", subscription: "s", action: "a.b", handler, secret: SECRET };
  await store.catalog.createSubscription({ ...subscription, maxRetries: 1, active: true }, NOW);
  const event = { actionId: rowid, revision: 1, payload: Buffer.from('{"n":1}') };
  await store.events.record([{ ...event, idempotencyKey: "k" }, event], NOW);
  const { claims } = await store.queue.claim(claimRequest({ nowMs: NOW, limit: 1, leaseMs: 1_000 }));
  const { deliveryId, claimId } = claims[0]!;
  const attempt = { deliveryId, claimId, startedAtMs: NOW, durationMs: 1, statusCode: 200, response: "ok" };
  await store.queue.finish([{ ...attempt, next: { kind: "delivered" } }], NOW);
  await store.close();
  good = readFileSync(join(folder, "evreg.db"));
  rmSync(folder, { recursive: true });
});

function open(folder: string): Promise<Store> {
  return openLibsqlStore({ folder, owner: testOwner(), logger: silentLogger });
}

/** A folder with that file, changed as any program with SQLite can. */
function crafted(...statements: readonly string[]): string {
  const folder = join(scratch.path, "crafted");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "evreg.db");
  writeFileSync(file, good);
  const database = new DatabaseSync(file);
  database.exec(["PRAGMA foreign_keys = OFF", "PRAGMA synchronous = OFF", ...statements].join(";\n"));
  database.close();
  return folder;
}

function examined(folder: string): Examined {
  return examineFile(join(folder, "evreg.db"));
}

function restored(folder: string): Promise<Restored> {
  const bytes = readFileSync(join(folder, "evreg.db"));
  async function* content(): AsyncGenerator<Uint8Array> {
    yield await Promise.resolve(bytes);
  }
  const into = join(scratch.path, "restored");
  return restore({
    folder: into,
    name: "b.db",
    content: content(),
    encryption: undefined,
    force: false,
    nowMs: NOW,
  });
}

describe("the tables of a data file", () => {
  it("are known for each format", () => {
    const pool = new ConnectionPool(":memory:", {}, 1);
    const sql = new Statements(pool.acquireSync());
    const digests = MIGRATIONS.map(({ statements }) => {
      for (const statement of statements) sql.run(statement);
      return schemaDigest(sql);
    });
    expect(digests).toEqual(MIGRATIONS.map((migration) => migration.schemaDigest));
    expect(sql.first("PRAGMA trusted_schema")).toEqual({ trusted_schema: 0 });
    pool.close();
  });

  it.each([
    [
      "a trigger",
      `CREATE TRIGGER again AFTER INSERT ON event BEGIN UPDATE token SET scopes = '["admin"]'; END`,
      "trigger again on event",
    ],
    ["a view", "CREATE VIEW tokens AS SELECT * FROM token", "view tokens"],
    ["a table", "CREATE TABLE more (x)", "table more"],
    ["an index", "CREATE INDEX more ON event (revision)", "index more on event"],
    ["a column", "ALTER TABLE token ADD COLUMN more INTEGER AS (abs(rowid))", "a changed table token"],
    ["no index", "DROP INDEX event_action", "no index event_action on event"],
  ])(
    "changed by another program, with %s, are refused by name, by restore, serve and doctor",
    async (_, statement, name) => {
      const folder = crafted(statement);
      const refused = { code: "invalid", message: expect.stringContaining(`it has ${name}.`) };
      await expect(restored(folder)).rejects.toMatchObject(refused);
      await expect(open(folder)).rejects.toMatchObject(refused);
      expect(() => examined(folder)).toThrow(expect.objectContaining(refused));
    },
  );

  it("may have what an interrupted encryption leaves", async () => {
    const folder = crafted("CREATE TABLE free_pages (filler BLOB NOT NULL) STRICT");
    await (await open(folder)).close();
    await restored(folder);
  });

  it("are no format below the first", async () => {
    const folder = crafted("PRAGMA user_version = -1");
    await expect(restored(folder)).rejects.toMatchObject({ code: "invalid" });
    await expect(open(folder)).rejects.toMatchObject({ code: "usage" });
  });
});

/** `{"not":{"not":…}}`. */
const DEEP = `replace(hex(zeroblob(2500)), '00', '{"not":') || '{}' || replace(hex(zeroblob(2500)), '00', '}')`;

describe("rows that evreg could not have written", () => {
  it("do not occur in evreg's own files", () => {
    expect(examined(crafted())).toMatchObject({
      impossible: [],
      damaged_events: [],
      events_without_checksum: 0,
    });
  });

  it.each([
    ["UPDATE action SET action = 'a b' WHERE action = 'a.b'", /^action of action \d+$/],
    ["UPDATE action SET application = replace(hex(zeroblob(200)), '00', 'é')", /^application of action 1$/],
    [
      `UPDATE action_revision SET schemata = ${DEEP} WHERE action_id = 1`,
      /^schemata of action_revision 1.1$/,
    ],
    ["UPDATE action_revision SET schemata = '{' WHERE action_id = 1", /^schemata of action_revision 1.1$/],
    [
      "UPDATE action_revision SET created_ms = 9000000000000000 WHERE action_id = 1",
      /^created_ms of action_revision 1.1$/,
    ],
    ["UPDATE event SET timestamped_ms = 9000000000000000 WHERE rowid = 2", /^timestamped_ms of event 2$/],
    ["UPDATE event SET payload = x'7b7d', checksum = NULL WHERE rowid = 2", undefined],
    ["UPDATE event SET payload = x'5b5b', checksum = NULL WHERE rowid = 2", /^payload of event 2$/],
    ["UPDATE event SET payload = zeroblob(16777217) WHERE rowid = 2", /^payload of event 2$/],
    ["UPDATE event SET idempotency_key = 'a' || char(10) WHERE rowid = 2", /^idempotency_key of event 2$/],
    ["UPDATE event SET rowid = 9223372036854775807 WHERE rowid = 2", /^numbers of event$/],
    ["UPDATE event SET rowid = -2 WHERE rowid = 2", /^numbers of event$/],
    ["UPDATE sqlite_sequence SET seq = 9007199254740991 WHERE name = 'delivery'", /^numbers of delivery$/],
    [
      "UPDATE subscription SET handler = 'https://h.example/' || char(0) || 'x'",
      /^handler of subscription 1$/,
    ],
    ["UPDATE subscription SET settings = '[1'", /^settings of subscription 1$/],
    ["UPDATE subscription SET max_retries = -1", /^max_retries of subscription 1$/],
    ["UPDATE subscription_secret SET secret = hex(zeroblob(10000))", /^secret of subscription_secret 1$/],
    ["UPDATE delivery SET state = 1, due_ms = NULL WHERE rowid = 1", /^state of delivery 1$/],
    ["UPDATE delivery SET first_status_code = 7 WHERE rowid = 1", /^first_status_code of delivery 1$/],
    ["UPDATE delivery SET first_duration_ms = -1 WHERE rowid = 1", /^first_duration_ms of delivery 1$/],
    ["UPDATE delivery SET event_id = 77 WHERE rowid = 1", /^delivery 1 without its event$/],
    ["UPDATE attempt SET response = zeroblob(20000)", /^response of attempt 1.1$/],
    ["UPDATE attempt SET error_code = 'none'", /^error_code of attempt 1.1$/],
    ["UPDATE token SET hash = upper(hash)", /^hash of token 1$/],
    ["UPDATE token SET scopes = 'admin'", /^scopes of token 1$/],
    ["UPDATE data_identity SET id = 'x'", /^id of data_identity 1$/],
    ["INSERT INTO event_count VALUES (-1, 0, 0)", /^action_id of event_count -1.0$/],
  ])("are named: %s", (statement, named) => {
    const folder = crafted(statement);
    const { impossible } = examined(folder);
    expect(impossible[0]).toEqual(named === undefined ? undefined : expect.stringMatching(named));
  });

  it("are refused by a restore", async () => {
    await expect(restored(crafted("UPDATE token SET hash = upper(hash)"))).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("could not have written: hash of token 1."),
    });
  });

  it("are refused by a restore too where its numbers would go on past the last", async () => {
    const folder = crafted("UPDATE sqlite_sequence SET seq = 9007199254740990 WHERE name = 'action'");
    await expect(restored(folder)).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("could not have written: numbers of action."),
    });
  });

  it("stop a start where no server could continue with them", async () => {
    for (const statement of [
      "UPDATE event SET rowid = 9223372036854775807 WHERE rowid = 2",
      "UPDATE token SET name = hex(zeroblob(50000000))",
    ]) {
      await expect(open(crafted(statement))).rejects.toMatchObject({
        code: "invalid",
        message: expect.stringMatching(/could not have written: (numbers of event|name of token 1)\./),
      });
    }
  });

  it("are an error only for callers who read them", async () => {
    const store = await open(
      crafted(
        `UPDATE action_revision SET schemata = ${DEEP} WHERE action_id = (SELECT rowid FROM action WHERE action = 'a.b')`,
        // As JSON each of its bytes is six: too much, were all of it read.
        "UPDATE attempt SET response = zeroblob(12000000)",
        "UPDATE delivery SET last_error = hex(zeroblob(34000000)) WHERE rowid = 2",
      ),
    );
    const refused = { code: "internal", message: expect.stringContaining("doctor --deep") };
    await expect(store.catalog.findAction("a.b")).rejects.toMatchObject(refused);
    await expect(store.catalog.listActions({})).rejects.toMatchObject(refused);
    expect((await store.queue.find(1))?.attempts).toHaveLength(1);
    await expect(store.queue.find(2)).rejects.toMatchObject(refused);
    await expect(store.queue.list({ limit: 10 })).rejects.toMatchObject(refused);
    expect(await store.catalog.findAction("evreg.delivery.failed")).toBeDefined();
    expect(store.admin.health()).toEqual({ status: "ok" });
    await store.close();
  });

  it("keep a subscription with damaged settings readable, and send nothing to it until they are replaced", async () => {
    for (const settings of ["not JSON", "[1]"]) {
      const store = await open(crafted(`UPDATE subscription SET settings = '${settings}'`));
      expect(await store.catalog.listSubscriptions({})).toMatchObject([{ rowid: 1, timeout_ms: null }]);
      expect((await store.queue.list({ limit: 10 })).length).toBe(2);
      expect((await store.queue.backlog(NOW)).due).toMatchObject({ deliveries: 1 });
      const claim = async (): Promise<number> =>
        (await store.queue.claim(claimRequest({ nowMs: NOW }))).claims.length;
      expect(await claim()).toBe(0);
      expect(store.admin.unreadableSubscriptions()).toEqual([1]);
      // Another change leaves them as they are.
      await store.catalog.updateSubscription(1, { maxRetries: 2 }, NOW);
      expect(await claim()).toBe(0);
      await store.catalog.updateSubscription(1, { settings: { timeout_ms: 2_000 } }, NOW);
      expect(store.admin.unreadableSubscriptions()).toEqual([]);
      expect(await claim()).toBe(1);
      await store.close();
    }
  });

  it("do not stop anything where a delivery has no event or no subscription, or a state that does not exist", async () => {
    for (const statement of [
      "UPDATE delivery SET event_id = 77 WHERE rowid = 2",
      "DELETE FROM subscription",
      "PRAGMA ignore_check_constraints = ON; UPDATE delivery SET state = 9 WHERE rowid = 2",
    ]) {
      const store = await open(crafted(statement));
      await store.queue.list({ limit: 10 });
      await store.queue.find(2);
      await store.queue.backlog(NOW);
      await store.queue.claim(claimRequest({ nowMs: NOW }));
      const { total } = await store.events.list({ order: "asc", limit: 9, page: 1 });
      expect(total).toBe(2);
      // A delivery without subscription stays with its event: nobody knows whether it is finished.
      expect(await store.events.removeExpired({ beforeMs: NOW + 1 })).toMatchObject({ next: undefined });
      expect(store.admin.health()).toEqual({ status: "ok" });
      await store.close();
    }
  });

  it("give a token no scope where its scopes cannot be read", async () => {
    const store = await open(crafted("UPDATE token SET scopes = 'admin'"));
    expect(await store.tokens.list()).toMatchObject([{ name: "t", scopes: [] }]);
    expect(await store.tokens.find("a".repeat(64))).toMatchObject({ scopes: [] });
    await store.close();
  });
});
