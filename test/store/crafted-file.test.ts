import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeAll, describe, expect, it } from "vitest";
import { examineFile, type FileFacts } from "../../src/store/libsql/files/closed-file.ts";
import type { Store } from "../../src/store/store.ts";
import { claimRequest } from "../support/claim-request.ts";
import { inNewFolder } from "../support/thread-pool.ts";
import { eventOf, newAction, openStore, putBackup, subscriptionTo, useScratch } from "./opened-store.ts";

const scratch = useScratch();
const NOW = Date.parse("2026-03-01T12:00:00.000Z");

/** A data file with a row or two in most tables. */
let good: Buffer;
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), "evreg-good-"));
  const store = await openStore(folder);
  const { rowid } = await newAction(store, "a.b", NOW);
  await store.tokens.create({ name: "t", scopes: ["admin"], hash: "a".repeat(64) }, NOW);
  await store.catalog.createSubscription(subscriptionTo("a.b"), NOW);
  const event = eventOf(rowid, '{"n":1}');
  await store.events.record([{ ...event, idempotencyKey: "k" }, event], NOW);
  const { claims } = await store.queue.claim(claimRequest({ nowMs: NOW, limit: 1, leaseMs: 1_000 }));
  const { deliveryId, claimId } = claims[0]!;
  const attempt = { deliveryId, claimId, startedAtMs: NOW, durationMs: 1, statusCode: 200, response: "ok" };
  await store.queue.finish([{ ...attempt, ending: "delivered" }], NOW);
  await store.close();
  good = readFileSync(join(folder, "evreg.db"));
  rmSync(folder, { recursive: true });
});

/** A folder with that file, changed as any program with SQLite can. */
function crafted(...statements: readonly string[]): string {
  const folder = join(scratch.path, "crafted");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "evreg.db");
  writeFileSync(file, good);
  const database = new DatabaseSync(file);
  database.exec(
    [
      "PRAGMA foreign_keys = OFF",
      "PRAGMA synchronous = OFF",
      "PRAGMA ignore_check_constraints = ON",
      ...statements,
    ].join(";\n"),
  );
  database.close();
  return folder;
}

const serve = (folder: string): Promise<Store> => inNewFolder(() => openStore(folder));

const examined = (folder: string): Promise<FileFacts> => examineFile(join(folder, "evreg.db"));

const restored = (folder: string) =>
  putBackup(join(scratch.path, "restored"), readFileSync(join(folder, "evreg.db")));

describe("the tables of a data file", () => {
  it.each([
    [
      "a trigger",
      `CREATE TRIGGER again AFTER INSERT ON event BEGIN UPDATE token SET scopes = '["admin"]'; END`,
      "trigger again",
    ],
    ["a view", "CREATE VIEW tokens AS SELECT * FROM token", "view tokens"],
    ["a table", "CREATE TABLE more (x)", "table more"],
    ["an index", "CREATE INDEX more ON event (revision)", "index more"],
    ["a column", "ALTER TABLE token ADD COLUMN more INTEGER AS (abs(rowid))", "table token"],
    ["no index", "DROP INDEX event_action", "index event_action"],
  ])(
    "changed by another program, with %s, are refused by name, by restore, serve and doctor",
    async (_, statement, name) => {
      const folder = crafted(statement);
      const refused = { code: "invalid", message: expect.stringContaining(`What differs: ${name}.`) };
      await expect(restored(folder)).rejects.toMatchObject(refused);
      await expect(openStore(folder)).rejects.toMatchObject(refused);
      await expect(examined(folder)).rejects.toThrow(expect.objectContaining(refused));
    },
  );
});

describe("rows that evreg could not have written", () => {
  it("do not occur in evreg's own files", async () => {
    expect(await examined(crafted())).toMatchObject({ damaged_events: [] });
  });

  it.each([
    ["action_revision", "UPDATE action_revision SET schemata = '{' WHERE action_id = 1"],
    ["event", "UPDATE event SET payload = zeroblob(16777217) WHERE rowid = 2"],
    ["subscription", "UPDATE subscription SET handler = 'https://h.example/' || char(0) || 'x'"],
    ["delivery", "UPDATE delivery SET state = 1, due_ms = NULL WHERE rowid = 1"],
    ["delivery 1 without its event", "UPDATE delivery SET event_id = 77 WHERE rowid = 1"],
    ["attempt", "UPDATE attempt SET response = zeroblob(20000)"],
    ["token", "UPDATE token SET scopes = 'admin'"],
  ])("are found by doctor and refused by a restore: %s, by %s", async (table, statement) => {
    const folder = crafted(statement);
    const why = table.includes(" ") ? table : `CHECK constraint failed in ${table}`;
    const refused = { code: "invalid", message: expect.stringContaining(why) as string };
    await expect(examined(folder)).rejects.toThrow(expect.objectContaining(refused));
    await expect(restored(folder)).rejects.toMatchObject(refused);
  });

  it("are an error only for callers who read them", async () => {
    const store = await serve(
      crafted(
        `UPDATE action_revision SET schemata = '{' WHERE action_id = (SELECT rowid FROM action WHERE action = 'a.b')`,
      ),
    );
    const refused = { code: "internal", message: expect.stringContaining("evreg backup") };
    await expect(store.catalog.findAction("a.b")).rejects.toMatchObject(refused);
    await expect(store.catalog.listActions({})).rejects.toMatchObject(refused);
    expect(await store.catalog.findAction("evreg.delivery.failed")).toBeDefined();
    expect(store.health()).toEqual({ status: "ok" });
    await store.close();
  });

  it("are noted as damage where a list misses an event, whose action is not there", async () => {
    const store = await serve(crafted("UPDATE event SET action_id = 77 WHERE rowid = 2"));
    const { events } = await store.events.list({ order: "asc", limit: 9, page: 1 });
    expect(events.map(({ rowid }) => rowid)).toEqual([1]);
    // One that is not there at all is no damage.
    expect(await store.events.find(999)).toBeUndefined();
    expect(store.damagedEvents()).toEqual([2]);
    await store.close();
  });

  it("send nothing where the settings of a subscription cannot be read, as its filter may be among them", async () => {
    const store = await serve(crafted("UPDATE subscription SET settings = 'not JSON'"));
    const refused = { code: "internal", message: expect.stringContaining("evreg backup") };
    await expect(store.queue.claim(claimRequest({ nowMs: NOW }))).rejects.toMatchObject(refused);
    await expect(store.catalog.listSubscriptions({})).rejects.toMatchObject(refused);
    expect((await store.events.list({ order: "asc", limit: 9, page: 1 })).total).toBe(2);
    await store.close();
  });
});
