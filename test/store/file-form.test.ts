import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { admitFile, migrateFile } from "../../src/store/libsql/files/migrate.ts";
import { APPLICATION_ID, LATEST_VERSION, MIGRATIONS } from "../../src/store/libsql/files/migrations.ts";
import type { Migration } from "../../src/store/libsql/files/released-migrations.ts";
import { inspectMigrations, migrate } from "../../src/store/libsql/migration-status.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import { Connection } from "../../src/store/libsql/thread/connection.ts";
import type { Store } from "../../src/store/store.ts";
import { testOwner } from "./owner.ts";
import { rawSql } from "./processes.ts";
import { useScratch } from "./scratch.ts";

const open = (folder: string): Promise<Store> =>
  openLibsqlStore({ folder, owner: testOwner(), logger: silentLogger });

async function makeFile(folder: string): Promise<string> {
  const store = await open(folder);
  await store.catalog.createAction({ action: "a.b", application: "x", schemata: {} }, 1);
  await store.close();
  return join(folder, "evreg.db");
}

function snapshot(folder: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(folder).map((name) => [name, readFileSync(join(folder, name)).toString("base64")]),
  );
}

describe("a file that evreg must not touch", () => {
  const scratch = useScratch();

  async function refusedUntouched(code: string, words: string): Promise<void> {
    const before = snapshot(scratch.path);
    for (const attempt of [() => open(scratch.path), () => migrate(scratch.path)]) {
      await expect(attempt()).rejects.toMatchObject({ code, message: expect.stringContaining(words) });
    }
    expect(() => inspectMigrations(scratch.path)).toThrow(words);
    expect(snapshot(scratch.path)).toEqual(before);
  }

  it("is one of a newer evreg", async () => {
    const file = await makeFile(scratch.path);
    rawSql(file, "PRAGMA journal_mode = DELETE", `PRAGMA user_version = ${LATEST_VERSION + 1}`);
    await refusedUntouched("usage", "A newer evreg made it");
  });

  it("is another program's database", async () => {
    const file = join(scratch.path, "evreg.db");
    rawSql(file, "CREATE TABLE mine (x)", "PRAGMA application_id = 7");
    await refusedUntouched("usage", "not made by evreg");
  });

  it("is no database at all", async () => {
    writeFileSync(join(scratch.path, "evreg.db"), "a letter, ".repeat(50));
    await refusedUntouched("usage", "not made by evreg");
    writeFileSync(join(scratch.path, "evreg.db"), "short");
    await refusedUntouched("usage", "not made by evreg");
  });

  it("is another program's database without a mark of its own", async () => {
    const file = join(scratch.path, "evreg.db");
    rawSql(file, "CREATE TABLE mine (x)");
    const before = readFileSync(file);
    await expect(open(scratch.path)).rejects.toMatchObject({ code: "usage" });
    expect(readFileSync(file).equals(before)).toBe(true);
  });
});

function next(statements: readonly string[], version = LATEST_VERSION + 1): Migration {
  return { version, name: `test ${version}`, statements, schemaDigest: "" };
}

function openConnection(file: string): Connection {
  return Connection.open(file, (sql) => admitFile(sql, file));
}

describe("migrations", () => {
  const scratch = useScratch();

  it("number their steps without gaps", () => {
    expect(MIGRATIONS.map(({ version }) => version)).toEqual(MIGRATIONS.map((_, index) => index + 1));
  });

  it("are reported before and after, and a dry run does nothing", async () => {
    const all = MIGRATIONS.map(({ version, name }) => ({ version, name }));
    expect(inspectMigrations(scratch.path)).toMatchObject({ exists: false, current: 0, pending: all });
    expect(await migrate(scratch.path, { dryRun: true })).toMatchObject({ applied: [], pending: all });
    expect(existsSync(join(scratch.path, "evreg.db"))).toBe(false);
    expect(await migrate(scratch.path)).toEqual({
      file: join(scratch.path, "evreg.db"),
      exists: true,
      current: LATEST_VERSION,
      latest: LATEST_VERSION,
      pending: [],
      applied: all.map(({ version }) => version),
    });
    expect(await migrate(scratch.path)).toMatchObject({ applied: [], pending: [] });
  });

  it("keep a complete copy of a file with data before the first step, and none of a new one", async () => {
    const file = await makeFile(scratch.path);
    expect(readdirSync(scratch.path)).toEqual(["evreg.db"]);
    const connection = openConnection(file);
    const steps = [
      ...MIGRATIONS,
      next(["CREATE TABLE later (x)"]),
      next(["DROP TABLE token"], LATEST_VERSION + 2),
    ];
    const { applied, copy } = migrateFile(connection, file, steps);
    connection.close();
    expect(applied).toEqual([LATEST_VERSION + 1, LATEST_VERSION + 2]);
    expect(copy).toBe(`${file}.before-v${LATEST_VERSION + 1}`);
    expect(statSync(copy ?? "").mode & 0o777).toBe(0o600);
    expect(rawSql(copy ?? "", "SELECT action FROM action WHERE built_in = 0")).toEqual([{ action: "a.b" }]);
    expect(rawSql(copy ?? "", "PRAGMA user_version")).toEqual([{ user_version: LATEST_VERSION }]);
    expect(rawSql(copy ?? "", "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
    expect(rawSql(copy ?? "", "PRAGMA application_id")).toEqual([{ application_id: APPLICATION_ID }]);
  });

  it("roll back a step that fails, and report where the copy is", async () => {
    const file = await makeFile(scratch.path);
    const connection = openConnection(file);
    const failing = ["CREATE TABLE later (x)", "CREATE TABLE later (x)"];
    const steps = [...MIGRATIONS, next(["CREATE TABLE first (x)"]), next(failing, LATEST_VERSION + 2)];
    expect(() => migrateFile(connection, file, steps)).toThrow(
      expect.objectContaining({
        code: "unavailable",
        message: expect.stringContaining(`${file}.before-v${LATEST_VERSION + 1}`),
      }),
    );
    const tables = connection.read.rows("SELECT name FROM sqlite_schema WHERE name = 'later'");
    expect(tables).toEqual([]);
    expect(connection.read.first("PRAGMA user_version")).toEqual({ user_version: LATEST_VERSION + 1 });
    connection.close();
  });

  it("leave no copy where the first step fails, as the file is as it was", async () => {
    const file = await makeFile(scratch.path);
    const connection = openConnection(file);
    const steps = [...MIGRATIONS, next(["CREATE TABLE later (x)", "CREATE TABLE later (x)"])];
    expect(() => migrateFile(connection, file, steps)).toThrow(/This step changed nothing\.$/);
    connection.close();
    expect(readdirSync(scratch.path).filter((name) => name.includes("before"))).toEqual([]);
  });

  it("continue a first start that was interrupted", async () => {
    const file = join(scratch.path, "evreg.db");
    writeFileSync(file, "");
    expect(inspectMigrations(scratch.path)).toMatchObject({ exists: true, current: 0 });
    await (await open(scratch.path)).close();
    expect(inspectMigrations(scratch.path)).toMatchObject({ current: LATEST_VERSION, pending: [] });
  });
});
