import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import type { EvregErrorCode } from "../../src/domain/error.ts";
import { mustBeBackup } from "../../src/store/libsql/files/restore.ts";
import type { EncryptionKeys } from "../../src/store/secret-cipher.ts";
import type { Store } from "../../src/store/store.ts";
import { backupOf, eventOf, newAction, openStore, putBackup, useScratch } from "./opened-store.ts";
import { fileSql } from "../support/file-sql.ts";
import { mountSmallDisk } from "../support/small-disk.ts";

const scratch = useScratch();
const small = mountSmallDisk(1);
const KEY: EncryptionKeys = { key: Buffer.alloc(32, 1) };
const NOW = Date.parse("2026-03-01T12:00:00.000Z");

const open = (folder: string, encryption?: EncryptionKeys): Promise<Store> =>
  openStore(folder, { encryption });

/** A backup of a store with this action and one event of it. */
async function newBackup(action: string, encryption?: EncryptionKeys): Promise<Buffer> {
  const store = await open(join(scratch.path, action), encryption);
  const { rowid } = await newAction(store, action, NOW);
  await store.events.record([eventOf(rowid)], NOW);
  const bytes = await backupOf(store);
  await store.close();
  return bytes;
}

const put = (
  bytes: Uint8Array,
  options: { force?: boolean; encryption?: EncryptionKeys; nowMs?: number } = {},
) => putBackup(join(scratch.path, "data"), bytes, { nowMs: NOW, ...options });

function isRefused(call: Promise<unknown>, code: EvregErrorCode, words: string | RegExp): Promise<void> {
  return expect(call).rejects.toMatchObject({ code, message: expect.stringMatching(words) as string });
}

function actionsIn(folder: string): readonly unknown[] {
  const rows = fileSql(join(folder, "evreg.db"), "SELECT action FROM action WHERE built_in = 0");
  return rows.map(({ action }) => action);
}

describe("restoring a backup", () => {
  let backup: Buffer;
  let data = "";

  beforeEach(async () => {
    data = join(scratch.path, "data");
    backup ??= await newBackup("from.backup");
  });

  it("makes the backup the data of a new folder, and leaves nothing else there", async () => {
    const restored = await put(backup);
    expect(restored).toMatchObject({ file: join(data, "evreg.db"), kept: null, last_event: 1 });
    expect(readdirSync(data)).toEqual(["evreg.db"]);
    await (await open(data)).close();
    expect(actionsIn(data)).toEqual(["from.backup"]);
    // They are other data than the backup's from now on.
    const identity = "SELECT id FROM data_identity";
    const [id] = fileSql(restored.file, identity);
    writeFileSync(join(scratch.path, "b.db"), backup);
    expect(fileSql(join(scratch.path, "b.db"), identity)).not.toEqual([id]);
  });

  it("takes a data file that was copied after its server had stopped", async () => {
    const store = await open(data);
    await newAction(store, "was.copied", NOW);
    await store.close();
    const copied = readFileSync(join(data, "evreg.db"));
    expect([...copied.subarray(18, 20)]).toEqual([2, 2]);
    await put(copied, { force: true });
    expect([...readFileSync(join(data, "evreg.db")).subarray(18, 20)]).toEqual([1, 1]);
    expect(readdirSync(data).filter((name) => name.endsWith("-wal"))).toEqual([]);
    expect(actionsIn(data)).toEqual(["was.copied"]);
  });

  it("keeps the replaced data next to it, and replaces only on request", async () => {
    const store = await open(data);
    await newAction(store, "was.there", NOW);
    await store.close();
    await isRefused(put(backup), "conflict", "--force");
    expect(actionsIn(data)).toEqual(["was.there"]);
    const { kept } = await put(backup, { force: true });
    expect(kept).toBe(join(data, "evreg.db.before-restore-20260301T120000000Z"));
    expect(actionsIn(data)).toEqual(["from.backup"]);
    const [row] = fileSql(kept!, "SELECT count(*) AS n FROM action WHERE action = 'was.there'");
    expect(row).toEqual({ n: 1 });
    // Another one in the same millisecond would keep what is there now by the same name.
    await isRefused(put(backup, { force: true }), "conflict", "in use");
    expect(fileSql(kept!, "SELECT count(*) AS n FROM action WHERE action = 'was.there'")).toEqual([row]);
  });

  it("replaces another program's file and data that is damaged beyond opening, and keeps them", async () => {
    await put(backup);
    const number = Buffer.from(backup);
    for (const [round, bytes] of [backup.subarray(0, 5_000), withNumber(number, 68, 7)].entries()) {
      writeFileSync(join(data, "evreg.db"), bytes);
      const { kept } = await put(backup, { force: true, nowMs: NOW + round });
      expect(readFileSync(kept!).equals(bytes)).toBe(true);
      expect(actionsIn(data)).toEqual(["from.backup"]);
    }
  });

  it.each<[string, (bytes: Buffer) => Buffer, RegExp]>([
    ["cut off", (bytes) => bytes.subarray(0, 90_000), /damaged/],
    ["empty", () => Buffer.alloc(0), /is no data file or backup of evreg/],
    ["no database", () => Buffer.from("something else entirely"), /is no data file or backup of evreg/],
    ["another program's", (bytes) => withNumber(bytes, 68, 7), /is no data file or backup of evreg/],
    ["of a newer evreg", (bytes) => withNumber(bytes, 60, 999), /has form 999/],
    ["changed in a row that an index has too", (bytes) => withText(bytes, "from.b", "form.b"), /damaged/],
  ])("refuses a backup that is %s, and changes nothing", async (_, spoil, why) => {
    await isRefused(put(spoil(Buffer.from(backup))), "invalid", why);
    await isRefused(put(spoil(Buffer.from(backup))), "invalid", "b.db");
    expect(readdirSync(data)).toEqual([]);
  });

  it("refuses a backup whose secrets the key does not open", async () => {
    const sealed = await newBackup("sealed.backup", KEY);
    await isRefused(put(sealed), "usage", "EVREG_ENCRYPTION_KEY");
    await isRefused(put(sealed, { encryption: { key: Buffer.alloc(32, 2) } }), "usage", "key");
    expect(existsSync(join(data, "evreg.db"))).toBe(false);
    expect(await put(sealed, { encryption: KEY })).toMatchObject({ encrypted: true });
    await (await open(data, KEY)).close();
    expect(actionsIn(data)).toEqual(["sealed.backup"]);
  });

  it("refuses a data file whose newest part is in its log", () => {
    const path = join(scratch.path, "b.db");
    writeFileSync(path, backup);
    mustBeBackup(path);
    writeFileSync(`${path}-wal`, "newest");
    expect(() => mustBeBackup(path)).toThrow("newest part");
  });
});

function withNumber(bytes: Buffer, at: number, value: number): Buffer {
  bytes.writeUInt32BE(value, at);
  return bytes;
}

/** In the first place where it is. */
function withText(bytes: Buffer, text: string, changed: string): Buffer {
  bytes.write(changed, bytes.indexOf(text), "latin1");
  return bytes;
}

describe.skipIf(small === undefined)("restoring to a disk without room (a tmpfs of 1 MiB)", () => {
  afterAll(() => small?.remove());

  it("says so, and leaves the data as they were", async () => {
    const data = join(small?.path ?? "", "data");
    const store = await open(data);
    await newAction(store, "was.there", NOW);
    await store.close();
    const before = readdirSync(data);
    const restoring = putBackup(data, Buffer.alloc(2 * 1_024 * 1_024), { force: true });
    await isRefused(restoring, "unavailable", /could not be copied to .*no space left/);
    expect(readdirSync(data)).toEqual(before);
    expect(actionsIn(data)).toEqual(["was.there"]);
  });
});
