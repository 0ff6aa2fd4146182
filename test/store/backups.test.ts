import { createHash } from "node:crypto";
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { Backup } from "../../src/domain/operations.ts";
import type { Store } from "../../src/store/store.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { eventOf, newAction, openStore, useScratch } from "./opened-store.ts";
import { fileSql } from "../support/file-sql.ts";
import { sqlElsewhere } from "./processes.ts";

const scratch = useScratch();
const small = mountSmallDisk(90);

const open = (): Promise<Store> => openStore(join(scratch.path, "data"));

async function written(backup: Backup): Promise<{ path: string; bytes: Buffer }> {
  const pieces: Uint8Array[] = [];
  for await (const piece of backup.content()) pieces.push(piece);
  const path = join(scratch.path, "copy.db");
  const bytes = Buffer.concat(pieces);
  writeFileSync(path, bytes);
  return { path, bytes };
}

async function actionOf(store: Store): Promise<number> {
  return (await newAction(store)).rowid;
}

const batchOf = (actionId: number, events: number) =>
  Array.from({ length: events }, () => eventOf(actionId, "x".repeat(2_000)));

describe("backups of a data file", () => {
  it("begin once the one before is closed; before that they are refused", async () => {
    const store = await open();
    const first = await store.backup!();
    await expect(store.backup!()).rejects.toMatchObject({ code: "conflict" });
    const closed = first.close();
    await (await store.backup!()).close();
    await closed;
    await store.close();
  });

  it("are complete while it is written to, with all that was stored before", async () => {
    const store = await open();
    const actionId = await actionOf(store);
    const batch = batchOf(actionId, 500);
    for (let round = 0; round < 12; round += 1) await store.events.record(batch, round);
    const over = new AbortController();
    const writing = (async () => {
      for (let round = 0; !over.signal.aborted; round += 1) {
        await store.events.record(batch, 20);
        // Pages all over the file change, not only its end.
        const fromMs = (round * 7) % 10;
        await store.events.removeExpired({ fromMs, beforeMs: fromMs + 1 });
        await store.tokens.create({ name: "n", hash: `h${round}`, scopes: [] }, 1);
      }
    })();
    const backup = await store.backup!();
    over.abort();
    await writing;
    const { path, bytes } = await written(backup);
    await backup.close();
    await store.close();
    expect(bytes.length).toBe(backup.bytes);
    expect(createHash("sha256").update(bytes).digest("hex")).toBe(backup.sha256);
    expect(fileSql(path, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
    const [row] = fileSql(
      path,
      "SELECT count(*) FILTER (WHERE rowid > 5000 AND rowid <= 6000) AS kept, max(rowid) AS last, (SELECT count(*) FROM token) AS tokens FROM event",
    );
    expect(row).toMatchObject({ kept: 1_000 });
    expect(Number(row?.["last"])).toBeGreaterThanOrEqual(6_000);
  });

  it("leave no other file, leave the folder locked, and do not keep the store from closing", async () => {
    const store = await open();
    await actionOf(store);
    const backup = await store.backup!();
    expect(readdirSync(join(scratch.path, "data")).toSorted()).toEqual([
      "evreg.db",
      "evreg.db-wal",
      "owner.json",
    ]);
    // Making it has not freed the folder.
    expect(() => sqlElsewhere(join(scratch.path, "data/evreg.db"), "DELETE FROM action")).toThrow(
      "SQLITE_BUSY",
    );
    await store.close();
    await expect(written(backup)).rejects.toThrow();
    await expect(store.backup!()).rejects.toMatchObject({ code: "unavailable" });
    expect(readdirSync(join(scratch.path, "data"))).toEqual(["evreg.db"]);
  });

  it("are aborted when their caller leaves, and the log works as before", async () => {
    const store = await open();
    const actionId = await actionOf(store);
    for (let round = 0; round < 8; round += 1) await store.events.record(batchOf(actionId, 500), 1);
    const gone = new AbortController();
    const making = store.backup!(gone.signal);
    gone.abort(new Error("gone"));
    await expect(making).rejects.toThrow("gone");
    // Twice what the log holds before the engine moves it.
    for (let round = 0; round < 16; round += 1) await store.events.record(batchOf(actionId, 500), 1);
    expect(statSync(join(scratch.path, "data", "evreg.db")).size).toBeGreaterThan(12_000_000);
    await store.close();
  });
});

describe.skipIf(small === undefined)("a disk without room (a tmpfs of 90 MiB)", () => {
  afterAll(() => small?.remove());

  it("refuses the backup with a clear message, and keeps taking writes", async () => {
    const folder = join(small?.path ?? "", "data");
    const store = await openStore(folder);
    const actionId = await actionOf(store);
    for (let round = 0; round < 15; round += 1) await store.events.record(batchOf(actionId, 500), 1);
    await expect(store.backup?.()).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("no room"),
    });
    await expect(store.events.record(batchOf(actionId, 1), 1)).resolves.toHaveLength(1);
    expect(store.health().status).toBe("ok");
    await store.close();
  });
});
