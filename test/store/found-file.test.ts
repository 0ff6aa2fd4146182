import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  copyFileSync,
  cpSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { withFile } from "../../src/runtime/files.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { FORM } from "../../src/store/libsql/files/schema.ts";
import { inspectMigrations, migrate } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
import { putBackup } from "./backups-of.ts";
import { fileSql } from "../support/file-sql.ts";
import { temporaryFolder } from "../support/program.ts";
import { newAction, openStore } from "./opened-store.ts";
import { testOwner } from "./owner.ts";
import { canTrace, runTraced } from "./processes.ts";
import { useScratch } from "./scratch.ts";

// What a start finds at the path of the data file, and begins or refuses.

const scratch = useScratch();
let folder = "";
const at = (name: string): string => join(folder, name);
const file = (): string => at("evreg.db");
const open = (): Promise<Store> => openStore(folder);

const made = temporaryFolder();
beforeAll(async () => {
  const store = await openStore(made.path);
  await newAction(store, "was.there");
  await store.close();
});
afterAll(() => made.remove());

beforeEach(() => {
  folder = join(scratch.path, "data");
  cpSync(made.path, folder, { recursive: true });
});

function contentOf(name: string): string {
  return lstatSync(at(name)).isFile() ? readFileSync(at(name), "base64") : "no file";
}

/** All files of the folder. */
function snapshot(): Record<string, string> {
  return Object.fromEntries(readdirSync(folder).map((name) => [name, contentOf(name)]));
}

async function isRefused(code: string, words: RegExp | string): Promise<void> {
  const before = snapshot();
  const message = typeof words === "string" ? expect.stringContaining(words) : expect.stringMatching(words);
  const refusal = { code, message: message as string };
  await expect(open()).rejects.toMatchObject(refusal);
  await expect(migrate(folder)).rejects.toMatchObject(refusal);
  expect(() => inspectMigrations(folder)).toThrow(expect.objectContaining(refusal));
  expect(snapshot()).toEqual(before);
}

/** What a restore that was interrupted leaves. */
const UNFINISHED = `evreg.db.unfinished-${randomUUID()}`;
const replaced = (make: () => void) => (): void => {
  rmSync(file());
  make();
};
const gone = (lose: () => void, trace: string) => (): void => {
  lose();
  writeFileSync(at(trace), "x");
};
const missing = (): void => rmSync(file());
const emptied = (): void => truncateSync(file(), 0);
const hasHad = (how: string, trace: string): RegExp =>
  new RegExp(
    `evreg\\.db ${how}, but the folder has had data: it has ${trace}\\. .*\`evreg restore FILE --data \\S+/data\``,
  );

it.each<readonly [what: string, make: () => void, code: string, words: RegExp]>([
  [
    "one of a newer evreg",
    () => fileSql(file(), "PRAGMA journal_mode = DELETE", `PRAGMA user_version = ${FORM + 1}`),
    "usage",
    /A newer evreg made it/,
  ],
  [
    "another program's",
    replaced(() => fileSql(file(), "CREATE TABLE mine (x)", "PRAGMA application_id = 7")),
    "usage",
    /not made by evreg/,
  ],
  ["no database", () => writeFileSync(file(), "a letter, ".repeat(50)), "usage", /not made by evreg/],
  ["too short for one", () => writeFileSync(file(), "short"), "usage", /not made by evreg/],
  ["a link to nothing", replaced(() => symlinkSync(at("nowhere"), file())), "usage", /is not a file/],
  ["a link to a folder", replaced(() => symlinkSync(folder, file())), "usage", /is not a file/],
  ["a pipe", replaced(() => void spawnSync("mkfifo", [file()])), "usage", /is not a file/],
  ["a folder", replaced(() => mkdirSync(file())), "usage", /is not a file/],
  ["missing beside a token", gone(missing, "token"), "unavailable", hasHad("is missing", "token")],
  ["empty beside a token", gone(emptied, "token"), "unavailable", hasHad("holds nothing", "token")],
  ...["token.before-restore-20260301T120000000Z", "owner.json", "evreg.db-shm", UNFINISHED].map(
    (trace) =>
      [`missing beside ${trace}`, gone(missing, trace), "unavailable", hasHad("is missing", trace)] as const,
  ),
  [
    "missing beside its log",
    () => (missing(), writeFileSync(at("evreg.db-wal"), "newest part")),
    "unavailable",
    /Put the data file back beside it/,
  ],
])("a data file that is %s is refused, and nothing is changed", async (_, make, code, words) => {
  make();
  await isRefused(code, words);
});

it("another program's database without a mark of its own is refused, and not changed", async () => {
  missing();
  fileSql(file(), "CREATE TABLE mine (x)");
  const before = snapshot();
  await expect(open()).rejects.toMatchObject({ code: "usage" });
  expect(snapshot()).toEqual(before);
});

/** A copy as a backup is, without the marks of a log. */
function putCopy(name: string, writtenS: number): void {
  copyFileSync(file(), at(name));
  utimesSync(at(name), writtenS, writtenS);
}

it("a data file that is missing is refused with the name of the newest copy, which can be restored", async () => {
  putCopy("evreg.db.before-v20", 1_000);
  putCopy("mine.db", 3_000);
  putCopy("newer-but-with-a-log.db", 4_000);
  writeFileSync(at("newer-but-with-a-log.db-wal"), "newest part");
  writeFileSync(at("another-program.db"), "SQLite format 3\0 of somebody");
  missing();
  const words = `restore the newest backup in the folder, or another, with \`evreg restore ${at("mine.db")} --data ${folder}\``;
  await isRefused("unavailable", words);
  await putBackup(folder, readFileSync(at("mine.db")), { force: true });
  const restored = await open();
  expect(await restored.catalog.findAction("was.there")).toBeDefined();
  await restored.close();
});

it("a data file that is missing is begun anew where only files of others are", async () => {
  missing();
  writeFileSync(at("notes.txt"), "mine");
  writeFileSync(at("another-program.db"), "SQLite format 3\0 of somebody");
  mkdirSync(at("folder.db"));
  await (await open()).close();
});

it("an empty data file with nothing else in the folder is begun anew with a warning", async () => {
  emptied();
  expect(inspectMigrations(folder)).toMatchObject({ exists: true, current: 0 });
  const warnings: string[] = [];
  const logger = { ...silentLogger, warn: (_: object, message: string) => void warnings.push(message) };
  await (await openStore(folder, { logger })).close();
  expect(warnings).toEqual([expect.stringContaining("empty, so the data begin anew")]);
});

it("a new file is reported before and after it is made, and a dry run does nothing", async () => {
  folder = join(scratch.path, "new");
  const pending = [{ version: FORM, name: expect.any(String) as string }];
  expect(inspectMigrations(folder)).toMatchObject({ exists: false, current: 0, pending });
  expect(await migrate(folder, { dryRun: true })).toMatchObject({ applied: [], pending });
  expect(lstatSync(folder, { throwIfNoEntry: false })).toBeUndefined();
  const upgraded = { file: file(), exists: true, current: FORM, latest: FORM, pending: [], applied: [FORM] };
  expect(await migrate(folder)).toEqual(upgraded);
  expect(await migrate(folder)).toMatchObject({ applied: [], pending: [] });
  expect(readdirSync(folder)).toEqual(["evreg.db"]);
});

it("a server's start removes what an interrupted restore has left, and no other command does", async () => {
  writeFileSync(at(UNFINISHED), "half");
  for (const command of ["events", "serve"]) {
    expect(readdirSync(folder)).toEqual(["evreg.db", UNFINISHED]);
    await (await openStore(folder, { owner: testOwner(command) })).close();
  }
  expect(readdirSync(folder)).toEqual(["evreg.db"]);
});

it.skipIf(!canTrace()).each(["pwrite64", "rename"])(
  "a first start that is killed at its %s can be repeated (skipped where strace may not trace)",
  async (call) => {
    rmSync(folder, { recursive: true });
    const count = call === "pwrite64" ? 30 : 1;
    const { signal } = runTraced("store-child.ts", [folder], `${call}:signal=KILL:when=${count}`);
    expect(signal).toBe("SIGKILL");
    await (await open()).close();
  },
);

function damage(offset: number): void {
  withFile(file(), "r+", (descriptor) => writeSync(descriptor, Buffer.from([0xff]), 0, 1, offset));
}

describe("a data file whose beginning is damaged", () => {
  it.each([0, 18, 60, 68])("at byte %i is called damaged where the folder has had data", async (offset) => {
    putCopy("mine.db", 3_000);
    damage(offset);
    const words =
      /is damaged: it does not begin as evreg writes it.*evreg restore \S+\/mine\.db --force --data \S+\/data`\.$/;
    await isRefused("invalid", words);
  });

  it("may be another program's where nothing else is in the folder, and is left alone", async () => {
    damage(0);
    linkSync(file(), at("a-second-name.db"));
    await isRefused("usage", /was not made by evreg, or its beginning is damaged/);
  });
});
