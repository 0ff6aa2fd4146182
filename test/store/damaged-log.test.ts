import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Logger, silentLogger } from "../../src/runtime/logger.ts";
import { fileTask } from "../../src/store/libsql/file-task.ts";
import type { OpenOptions } from "../../src/store/libsql/open.ts";
import type { WriteConnection } from "../../src/store/libsql/connection.ts";
import { checkLog, MAX_UNSYNCED } from "../../src/store/libsql/files/wal-check.ts";
import type { Store } from "../../src/store/store.ts";
import { crashed, type CrashedFiles, damageCommit, FRAME_BYTES, putFiles } from "./open-file.ts";
import { newAction, openStore, useScratch } from "./opened-store.ts";
import { fileSql } from "../support/file-sql.ts";
import { lengthOf } from "../faults/length.ts";

// The promise under test: a log that was damaged after it had been stored is refused, or told of; what a cut of the power
// leaves of it never is refused.

const scratch = useScratch();
const file = (): string => join(scratch.path, "evreg.db");
const log = (): string => `${file()}-wal`;

const open = (options: Partial<OpenOptions> = {}): Promise<Store> => openStore(scratch.path, options);

function watchedLogger(): { logger: Logger; warnings: string[] } {
  const warnings: string[] = [];
  return { logger: { ...silentLogger, warn: (_, text) => void warnings.push(text) }, warnings };
}

const SECTOR = 512;
const COMMITS = 30;

/** The same numbers in each run. */
function pseudoRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const CREATE = `INSERT INTO action (action, application, revision, created_ms)
  VALUES ('a' || (SELECT count(*) FROM action), 'x', 1, 1)`;
const write = (connection: WriteConnection, durable?: "later"): Promise<number> =>
  connection.write((sql) => sql.run(CREATE), durable);

/** So many commits, each by itself, and the files as they are after a `kill -9`. */
const commits = (): Promise<CrashedFiles> =>
  crashed(async (connection) => {
    for (let n = 0; n < COMMITS; n += 1) await write(connection);
  });

describe("a log with a changed byte", () => {
  it("is refused for any byte of its header, even with a single transaction", async () => {
    const { db, wal } = await crashed(async (connection) => {
      connection.checkpoint();
      await connection.write((sql) => sql.run("INSERT INTO write_check VALUES (1, x'')"));
    });
    expect(wal.length).toBe(32 + FRAME_BYTES);
    for (let at = 0; at < 32; at += 1) {
      const changed = Buffer.from(wal);
      changed[at]! ^= 1;
      putFiles(scratch.path, { db, wal: changed });
      expect(checkLog(file(), 0).isDamaged).toBe(true);
    }
  });

  it("is refused and left as it is, until its loss is accepted: then both files are kept, and no number is reused", async () => {
    const { db, wal } = await commits();
    damageCommit(wal, 4);
    putFiles(scratch.path, { db, wal });
    const refusal = expect.objectContaining({
      code: "unavailable",
      message: expect.stringMatching(
        /evreg\.db-wal is damaged, .*at least \d+ transactions, .*--accept-loss/,
      ),
    }) as unknown;
    await expect(open()).rejects.toEqual(refusal);
    await expect(fileTask("examineFile", file())).rejects.toEqual(refusal);
    expect([readFileSync(file()), readFileSync(log())]).toEqual([db, wal]);

    const { logger, warnings } = watchedLogger();
    chmodSync(file(), 0o644);
    const store = await open({ logger, acceptsLoss: true });
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    await newAction(store, "next");
    await store.close();
    expect(numbers().filter((rowid) => rowid <= COMMITS)).toEqual([1, 2, 3, 4]);
    expect(warnings).toEqual([expect.stringContaining("without the 26 transactions behind")]);
    const kept = readdirSync(scratch.path).filter((name) => name.includes(".before-restore-"));
    expect(kept.toSorted().map((name) => readFileSync(join(scratch.path, name)))).toEqual([db, wal]);
    await fileTask("examineFile", file());
  });
});

describe("what a power cut leaves", () => {
  it("is never refused, whatever unsynced part of it is left", async () => {
    let synced = Buffer.alloc(0);
    const { wal } = await crashed(async (connection, running) => {
      // A second round of the log, so that older frames lie behind.
      for (let n = 0; n < 60; n += 1) await write(connection);
      connection.read.run("PRAGMA wal_checkpoint(RESTART)");
      for (let n = 0; n < 10; n += 1) await write(connection);
      synced = readFileSync(running);
      for (let n = 0; n < MAX_UNSYNCED; n += 1) await write(connection, "later");
      await write(connection);
    });
    const sectors: number[] = [];
    for (let at = 0; at < wal.length; at += SECTOR) {
      if (!wal.subarray(at, at + SECTOR).equals(synced.subarray(at, at + SECTOR))) sectors.push(at);
    }
    expect(sectors.length).toBeGreaterThan(MAX_UNSYNCED * 8);
    const random = pseudoRandom(11);
    const { "power cuts": cuts } = lengthOf("store/damaged-log");
    let told = 0;
    for (let round = 0; round < cuts; round += 1) {
      const cut = Buffer.from(wal);
      const lostShare = 1 + random(20);
      for (const at of sectors) if (random(20) < lostShare) synced.copy(cut, at, at, at + SECTOR);
      writeFileSync(log(), cut);
      const { isDamaged, commitsBehind, wholeBytes } = checkLog(file(), 0);
      expect(isDamaged).toBe(false);
      expect(wholeBytes).toBeGreaterThan(32);
      if (commitsBehind > 0) told += 1;
    }
    expect(told).toBeGreaterThan(0);
  });

  it("is not reported for frames of an earlier round of the log", async () => {
    const files = await crashed(async (connection) => {
      for (let n = 0; n < COMMITS; n += 1) await write(connection);
      connection.read.run("PRAGMA wal_checkpoint(RESTART)");
      await write(connection);
    });
    putFiles(scratch.path, files);
    expect(checkLog(file(), 0)).toMatchObject({ isDamaged: false, commitsBehind: 0 });
  });

  it("lets a start continue, with a report, and reuses none of the lost numbers", async () => {
    const { db, wal } = await commits();
    damageCommit(wal, -2);
    putFiles(scratch.path, { db, wal });
    const { logger, warnings } = watchedLogger();
    const store = await open({ logger });
    await newAction(store, "next");
    await store.close();
    expect(numbers().filter((rowid) => rowid <= COMMITS)).toHaveLength(COMMITS - 2);
    expect(warnings).toEqual([expect.stringContaining("could not be read and were dropped")]);
  });
});

describe("a data file that was truncated while it was closed", () => {
  it("is refused, and so is an empty one beside its log", async () => {
    const { db, wal } = await crashed(async (connection) => {
      await connection.write((sql) => sql.run("INSERT INTO write_check VALUES (1, zeroblob(20000))"));
      connection.read.run("PRAGMA wal_checkpoint(PASSIVE)");
    });
    for (const [bytes, left, why] of [
      [db.length - 4_097, Buffer.alloc(0), /it is damaged.*evreg restore FILE --force --data \S+/],
      [0, wal, /is missing or empty, .* it has \S+-wal.*evreg restore FILE --force --data \S+/],
    ] as const) {
      putFiles(scratch.path, { db: db.subarray(0, bytes), wal: left });
      await expect(open()).rejects.toMatchObject({
        code: "unavailable",
        message: expect.stringMatching(why) as string,
      });
      if (left === wal) expect(readFileSync(log()).equals(wal)).toBe(true);
    }
    putFiles(scratch.path, { db, wal });
    await (await open()).close();
    await fileTask("examineFile", file());
  });
});

/** Of all actions, evreg's own among them, which a start creates with the next numbers. */
function numbers(): number[] {
  return fileSql(file(), "SELECT rowid AS id FROM action ORDER BY rowid").map((row) => Number(row["id"]));
}
