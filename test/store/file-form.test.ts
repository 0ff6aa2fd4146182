import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { FORM } from "../../src/store/libsql/files/schema.ts";
import { inspectMigrations, migrate } from "../../src/store/libsql/migration-status.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
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
    rawSql(file, "PRAGMA journal_mode = DELETE", `PRAGMA user_version = ${FORM + 1}`);
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

describe("a new file", () => {
  const scratch = useScratch();

  it("is reported before and after it is made, and a dry run does nothing", async () => {
    const pending = [{ version: FORM, name: expect.any(String) as string }];
    expect(inspectMigrations(scratch.path)).toMatchObject({ exists: false, current: 0, pending });
    expect(await migrate(scratch.path, { dryRun: true })).toMatchObject({ applied: [], pending });
    expect(existsSync(join(scratch.path, "evreg.db"))).toBe(false);
    expect(await migrate(scratch.path)).toEqual({
      file: join(scratch.path, "evreg.db"),
      exists: true,
      current: FORM,
      latest: FORM,
      pending: [],
      applied: [FORM],
    });
    expect(await migrate(scratch.path)).toMatchObject({ applied: [], pending: [] });
    expect(readdirSync(scratch.path)).toEqual(["evreg.db"]);
  });

  it("is made by the start after one that was interrupted", async () => {
    const file = join(scratch.path, "evreg.db");
    writeFileSync(file, "");
    expect(inspectMigrations(scratch.path)).toMatchObject({ exists: true, current: 0 });
    await (await open(scratch.path)).close();
    expect(inspectMigrations(scratch.path)).toMatchObject({ current: FORM, pending: [] });
  });
});
