import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, linkSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { folderFindings } from "../../src/app/doctor-findings.ts";
import { restoreLeftovers } from "../../src/runtime/data-files.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import { temporaryFolder } from "../support/program.ts";
import { testOwner } from "./owner.ts";
import { useScratch } from "./scratch.ts";

// The promise under test: wherever a restore is killed, the folder has the data from before or those of the backup, or
// says that it has neither.

const scratch = useScratch();
const program = fileURLToPath(new URL("restore-child.ts", import.meta.url));
const env = { ...process.env, NODE_COMPILE_CACHE: getCompileCacheDir() };
let data = "";
let file = "";

beforeEach(async () => {
  data = join(scratch.path, "data");
  file = join(data, "evreg.db");
  await makeData(data, "was.there");
});

async function makeData(folder: string, action: string): Promise<void> {
  const store = await openLibsqlStore({ folder, owner: testOwner(), logger: silentLogger });
  await store.catalog.createAction({ action, application: "x", schemata: {} }, Date.now());
  await store.close();
}

async function actions(): Promise<readonly string[]> {
  const store = await openLibsqlStore({ folder: data, owner: testOwner(), logger: silentLogger });
  const found = await store.catalog.listActions({});
  await store.close();
  return found.map(({ action }) => action).filter((action) => !action.startsWith("evreg."));
}

const keptNames = (): string[] =>
  readdirSync(data).filter((name) => name.startsWith("evreg.db.before-restore-"));

/** @param injections what strace does to its calls; answers the signal that ended it */
function restore(...injections: string[]): NodeJS.Signals | null {
  const inject = injections.flatMap((injection) => ["-e", `inject=${injection}`]);
  const trace = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=link,rename", ...inject];
  const command = [process.execPath, program, data, join(scratch.path, "other/evreg.db")];
  const { signal, status, stderr } = spawnSync("strace", [...trace, ...command], { env, encoding: "utf8" });
  if (signal === null) expect(status, stderr).toBe(0);
  return signal;
}

describe.skipIf(!canTrace())("a restore that is killed (skipped where strace may not trace)", () => {
  // Compiled code that is kept for the next run is renamed into its place, too, and must not be counted.
  beforeAll(async () => {
    const folder = temporaryFolder();
    const { path } = folder;
    await makeData(join(path, "other"), "from.backup");
    spawnSync(process.execPath, [program, join(path, "data"), join(path, "other/evreg.db")], { env });
    folder.remove();
  });
  beforeEach(() => makeData(join(scratch.path, "other"), "from.backup"));

  it("before the backup is in place leaves the old data, and can be repeated", async () => {
    expect(restore("rename:signal=KILL:when=1")).toBe("SIGKILL");
    const secondNames = keptNames();
    expect(restoreLeftovers(data)).toEqual({ secondNames, unfinished: [expect.any(String)] });
    expect(await actions()).toEqual(["was.there"]);
    expect(restore()).toBeNull();
    expect(await actions()).toEqual(["from.backup"]);
    // The name from before is gone, the data it stood for is kept, and what nobody can tell the owner of stays.
    expect(keptNames()).toHaveLength(1);
    expect(keptNames()).not.toEqual(secondNames);
    expect(restoreLeftovers(data)).toEqual({ secondNames: [], unfinished: [expect.any(String)] });
  });

  it("on a file system without links, keeps a start from creating an empty file", async () => {
    expect(restore("link:error=EPERM", "rename:signal=KILL:when=2")).toBe("SIGKILL");
    const refusal = expect.stringContaining("a restore was cut off");
    await expect(actions()).rejects.toMatchObject({ code: "unavailable", message: refusal });
    expect(existsSync(file)).toBe(false);
    renameSync(join(data, keptNames()[0]!), file);
    expect(await actions()).toEqual(["was.there"]);
  });
});

it("a server's start and the doctor report what an interrupted restore has left", async () => {
  const [second, copy] = ["evreg.db.before-restore-20260301T120000000Z", `evreg.db.restore-${randomUUID()}`];
  linkSync(file, join(data, second));
  writeFileSync(join(data, copy), "half");
  const left: unknown[] = [];
  const warn = (fields: object): void => void left.push(fields);
  const logger = { ...silentLogger, warn };
  for (const command of ["serve", "events"]) {
    await (await openLibsqlStore({ folder: data, owner: testOwner(command), logger })).close();
  }
  expect(left).toEqual([{ left: [second, copy] }]);
  const findings = folderFindings(data);
  expect(findings.find(({ check }) => check === "size")?.found).not.toContain(second);
  const finding = findings.find(({ check }) => check === "restore");
  expect(finding?.found).toContain(`${second} is the data file itself by a second name`);
  expect(finding?.remedy).toContain(`rm ${join(data, second)} ${join(data, copy)}`);
  rmSync(join(data, second));
  rmSync(join(data, copy));
  expect(folderFindings(data).map(({ check }) => check)).toEqual(["folder", "disk", "size"]);
  expect(await actions()).toEqual(["was.there"]);
});

it("a start does not continue without a log that was taken away from its file", async () => {
  const kept = `${file}.before-restore-20260301T120000000Z`;
  linkSync(file, kept);
  expect(await actions()).toEqual(["was.there"]);
  writeFileSync(`${kept}-wal`, "newest");
  const refusal = expect.stringContaining("is without its log");
  await expect(actions()).rejects.toMatchObject({ code: "unavailable", message: refusal });
  // Where there are no second names, the log goes first; the name of the old file goes with the next step.
  rmSync(kept);
  const copy = join(data, `evreg.db.restore-${randomUUID()}`);
  writeFileSync(copy, "whole");
  await expect(actions()).rejects.toMatchObject({ code: "unavailable", message: refusal });
  // A log that somebody left behind as they cleared up is no such thing.
  rmSync(copy);
  expect(await actions()).toEqual(["was.there"]);
  // Nor is the log of a copy whose own name a cut of the power took.
  writeFileSync(`${copy}-wal`, "log");
  expect(await actions()).toEqual(["was.there"]);
});

it("a start on a folder whose first restore was interrupted reports no earlier data", async () => {
  rmSync(file);
  const copy = `evreg.db.restore-${randomUUID()}`;
  writeFileSync(join(data, copy), "half");
  const refused = await actions().catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "unavailable", message: expect.stringContaining(copy) });
  expect((refused as Error).message).toContain("Restore the backup again; or, to begin without it, move");
  expect((refused as Error).message).not.toContain("before-restore");
});

function canTrace(): boolean {
  return spawnSync("strace", ["-qq", "-o", "/dev/null", "-e", "inject=link:error=EIO", "true"]).status === 0;
}
