import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
import type { Backup } from "../../src/domain/backup.ts";
import { testOwner } from "./owner.ts";
import { rawSql } from "./processes.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();

const open = (): Promise<Store> =>
  openLibsqlStore({ folder: join(scratch.path, "data"), owner: testOwner(), logger: silentLogger });

async function written(backup: Backup): Promise<{ path: string; bytes: Buffer }> {
  const pieces: Uint8Array[] = [];
  for await (const piece of backup.content()) pieces.push(piece);
  const path = join(scratch.path, "copy.db");
  const bytes = Buffer.concat(pieces);
  writeFileSync(path, bytes);
  return { path, bytes };
}

async function actionOf(store: Store): Promise<number> {
  return (await store.createAction({ action: "a.b", application: "x", schemata: {} }, 1)).rowid;
}

const batchOf = (actionId: number, events: number) =>
  Array.from({ length: events }, () => ({ actionId, revision: 1, payload: Buffer.alloc(2_000, "x") }));

describe("backups of a data file", () => {
  it("are whole while it is written to, with all that was stored before", async () => {
    const store = await open();
    const actionId = await actionOf(store);
    const batch = batchOf(actionId, 500);
    for (let round = 0; round < 20; round += 1) await store.recordEvents(batch, 1);
    let isOver = false;
    const writing = (async () => {
      for (let round = 0; !isOver; round += 1) {
        await store.recordEvents(batch, 1);
        // Pages all over the file change, not only its end.
        await store.removeEvents([round * 37 + 1]);
        await store.createToken({ name: "n", hash: `h${round}`, scopes: [] }, 1);
      }
    })();
    const backup = await store.backup();
    isOver = true;
    await writing;
    const { path, bytes } = await written(backup);
    await backup.close();
    await store.close();
    expect(bytes.length).toBe(backup.bytes);
    expect(createHash("sha256").update(bytes).digest("hex")).toBe(backup.sha256);
    expect(rawSql(path, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
    const [row] = rawSql(
      path,
      "SELECT count(*) FILTER (WHERE rowid > 5000 AND rowid <= 10000) AS kept, max(rowid) AS last, (SELECT count(*) FROM token) AS tokens FROM event",
    );
    expect(row).toMatchObject({ kept: 5_000 });
    expect(Number(row?.["last"])).toBeGreaterThanOrEqual(10_000);
  });
});
