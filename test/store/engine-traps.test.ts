import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { addressOf, type WriteConnection } from "../../src/store/libsql/connection.ts";
import type { SyncSql } from "../../src/store/libsql/statements.ts";
import type { Store } from "../../src/store/store.ts";
import { openFile } from "./open-file.ts";
import { newAction, openStore, useScratch } from "./opened-store.ts";
import { fileSql } from "../support/file-sql.ts";
import { startChild } from "./processes.ts";

const SOURCES = new URL("../../src/", import.meta.url);
const scratch = useScratch();
const open = (): Promise<Store> => openStore(scratch.path);

const synchronous = (sql: SyncSql): unknown => sql.first("PRAGMA synchronous");

const openConnection = (): Promise<WriteConnection> => openFile(join(scratch.path, "one.db"));

describe("SQLITE_BUSY", () => {
  it("at the opening leaves a store whose later writes do reach the file", async () => {
    await (await open()).close();
    const file = join(scratch.path, "evreg.db");
    const other = startChild("raw-child.ts", [file, "--hold", "DELETE FROM write_check"]);
    expect(await other.line()).toBe("held");
    await expect(open()).rejects.toMatchObject({ code: "conflict" });
    other.process.stdin?.end();
    await other.ended();

    const store = await open();
    for (let n = 0; n < 20; n += 1) await newAction(store, `a.n${n}`);
    await store.close();
    expect(fileSql(file, "SELECT count(*) AS n FROM action WHERE built_in = 0")).toEqual([{ n: 20 }]);
  });
});

/** The sources that a text of the pattern is in. */
function sourcesWith(pattern: RegExp): readonly string[] {
  const names = readdirSync(SOURCES, { recursive: true, encoding: "utf8" });
  return names.filter(
    (name) => name.endsWith(".ts") && pattern.test(readFileSync(new URL(name, SOURCES), "utf8")),
  );
}

describe("the connection", () => {
  it("uses the system's own file layer, as the engine's takes a failed read for zeros, and evreg opens files in no other way", () => {
    expect(addressOf("/a/b.db")).toMatch(/^file:\/\/.*\/a\/b\.db\?vfs=(unix-excl|win32)$/);
    const openers = sourcesWith(/^import (?!type\b).*(@libsql|"libsql)|(import|require)\("(@libsql|libsql)/m);
    expect(openers).toEqual([join("store", "libsql", "connection.ts")]);
  });

  // A second thread that moves the log while another one's commit restarts it can lose what was committed.
  it("that writes moves the log, and no other beside it", () => {
    expect(sourcesWith(/wal_checkpoint/).toSorted()).toEqual([
      join("store", "libsql", "connection.ts"),
      join("store", "libsql", "files", "closed-file.ts"),
    ]);
  });

  it("has its settings in force", async () => {
    const { read } = await openConnection();
    const setting = (name: string): unknown =>
      Object.values(read.first<Record<string, unknown>>(`PRAGMA ${name}`) ?? {})[0];
    expect(setting("journal_mode")).toBe("wal");
    expect(setting("synchronous")).toBe(2);
    expect(setting("foreign_keys")).toBe(1);
    expect(setting("busy_timeout")).toBe(0);
  });

  it("syncs each commit unless a transaction may be durable later, and then again with the next", async () => {
    const connection = await openConnection();
    expect(await connection.write(synchronous, "later")).toEqual({ synchronous: 1 });
    expect(await connection.write(synchronous, "later")).toEqual({ synchronous: 1 });
    expect(await connection.write(synchronous)).toEqual({ synchronous: 2 });
    expect(await connection.write(synchronous, "later")).toEqual({ synchronous: 1 });
    expect(await connection.write(synchronous)).toEqual({ synchronous: 2 });
  });

  it("refuses text that the engine would change, and binds whole numbers as integers", async () => {
    const { read } = await openConnection();
    for (const text of ["a\0b", "\ud800", "x\udc00y"]) {
      expect(() => read.first("SELECT ? AS x", text)).toThrow(expect.objectContaining({ code: "invalid" }));
    }
    expect(read.first("SELECT typeof(?) AS a, typeof(?) AS b", 7, 7.5)).toEqual({
      a: "integer",
      b: "real",
    });
    const largest = Number.MAX_SAFE_INTEGER;
    expect(read.first("SELECT ? AS x", largest)).toEqual({ x: largest });
  });
});
