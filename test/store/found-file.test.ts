import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  renameSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { withFile } from "../../src/runtime/files.ts";
import { FORM } from "../../src/store/libsql/files/schema.ts";
import { inspectMigrations, migrate } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
import { fileSql } from "../support/file-sql.ts";
import { temporaryFolder } from "../support/program.ts";
import { newAction, openStore, useScratch } from "./opened-store.ts";
import { testOwner } from "./owner.ts";
import { canTrace, runTraced } from "./processes.ts";

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
const hasHad = (trace: string): RegExp =>
  new RegExp(`has had data: it has ${trace}\\. .*\`evreg restore FILE --force --data \\S+/data\``);

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
    "invalid",
    /not made by evreg/,
  ],
  ["no database", () => writeFileSync(file(), "a letter, ".repeat(50)), "invalid", /not made by evreg/],
  ["too short for one", () => writeFileSync(file(), "short"), "invalid", /not made by evreg/],
  [
    "a link",
    () => (renameSync(file(), at("elsewhere.sqlite")), symlinkSync(at("elsewhere.sqlite"), file())),
    "usage",
    /is a link/,
  ],
  ["a pipe", replaced(() => void spawnSync("mkfifo", [file()])), "usage", /is not a file/],
  ["a folder", replaced(() => mkdirSync(file())), "usage", /is not a file/],
  ["missing beside a token", gone(missing, "token"), "unavailable", hasHad("token")],
  ["empty beside a token", gone(emptied, "token"), "unavailable", hasHad("token")],
  ...["token.before-restore-20260301T120000000Z", "owner.json", "evreg.db-shm", UNFINISHED].map(
    (trace) => [`missing beside ${trace}`, gone(missing, trace), "unavailable", hasHad(trace)] as const,
  ),
  [
    "missing beside its log",
    () => (missing(), writeFileSync(at("evreg.db-wal"), "newest part")),
    "unavailable",
    hasHad("\\S+/evreg\\.db-wal"),
  ],
])("a data file that is %s is refused, and nothing is changed", async (_, make, code, words) => {
  make();
  await isRefused(code, words);
});

it("another program's database without a mark of its own is refused, and not changed", async () => {
  missing();
  fileSql(file(), "CREATE TABLE mine (x)");
  const before = snapshot();
  await expect(open()).rejects.toMatchObject({ code: "invalid" });
  expect(snapshot()).toEqual(before);
});

it.each([
  ["missing", missing],
  ["empty", emptied],
])("a data file that is %s is begun anew where only files of others are", async (_, lose) => {
  lose();
  expect(inspectMigrations(folder)).toMatchObject({ current: 0 });
  writeFileSync(at("notes.txt"), "mine");
  await (await open()).close();
});

it("a new file is reported before and after it is made, and a dry run does nothing", async () => {
  folder = join(scratch.path, "new");
  expect(inspectMigrations(folder)).toMatchObject({ exists: false, current: 0 });
  expect(await migrate(folder, { dryRun: true })).toMatchObject({ exists: false, current: 0 });
  expect(lstatSync(folder, { throwIfNoEntry: false })).toBeUndefined();
  const upgraded = { file: file(), exists: true, current: FORM, latest: FORM };
  expect(await migrate(folder)).toEqual(upgraded);
  expect(await migrate(folder)).toEqual(upgraded);
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

it.each([0, 18, 60, 68])("a data file that is damaged at byte %i is refused", async (offset) => {
  withFile(file(), "r+", (descriptor) => writeSync(descriptor, Buffer.from([0xff]), 0, 1, offset));
  const before = snapshot();
  const message = expect.stringMatching(/evreg restore FILE --force --data \S+\/data`/) as string;
  await expect(open()).rejects.toMatchObject({ message });
  expect(snapshot()).toEqual(before);
});
