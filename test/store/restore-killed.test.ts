import { cpSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../support/program.ts";
import { newAction, openStore, putBackup, useScratch } from "./opened-store.ts";
import { crashed, damageCommit, putFiles } from "./open-file.ts";
import { canTrace, runTraced } from "./processes.ts";

// The promise under test: wherever a restore is killed, the next start has the data from before or those of the backup.

const scratch = useScratch();
const made = temporaryFolder();
const backup = join(made.path, "from.backup/evreg.db");
const data = (): string => join(scratch.path, "was.there");

async function actions(): Promise<readonly string[]> {
  const store = await openStore(data());
  const all = await store.catalog.listActions({ applications: ["x"] });
  await store.close();
  return all.map(({ action }) => action);
}

const keptNames = (): string[] =>
  readdirSync(data()).filter((name) => name.startsWith("evreg.db.before-restore-"));

const restoreWith = (inject: string): NodeJS.Signals | null =>
  runTraced("restore-child.ts", [data(), backup], inject).signal;

const repeat = (): Promise<unknown> =>
  putBackup(data(), readFileSync(backup), { force: true, nowMs: Date.now() });

describe.skipIf(!canTrace())("a restore that is killed (skipped where strace may not trace)", () => {
  beforeAll(async () => {
    for (const action of ["was.there", "from.backup", "ignored"]) {
      const store = await openStore(join(made.path, action));
      await newAction(store, action, Date.now());
      await store.close();
    }
    // Compiled code that is kept for the next run is renamed into its place, too, and must not be counted.
    runTraced("restore-child.ts", [join(made.path, "ignored"), backup], "link:when=99:error=EIO");
  });
  afterAll(() => made.remove());
  beforeEach(() => cpSync(join(made.path, "was.there"), data(), { recursive: true }));

  it.each([
    ["link", "before the old data has another name", 0],
    ["rename", "before the new data has its name", 1],
  ])("at its %s, %s, leaves the old data, and can be repeated", async (call, _, keptCopies) => {
    expect(restoreWith(`${call}:signal=KILL:when=1`)).toBe("SIGKILL");
    expect(readdirSync(data()).filter((name) => name.includes("unfinished"))).toHaveLength(1);
    expect(keptNames()).toHaveLength(keptCopies);
    expect(await actions()).toEqual(["was.there"]);
    await repeat();
    expect(await actions()).toEqual(["from.backup"]);
    expect(keptNames()).toHaveLength(keptCopies + 1);
  });

  it("with a damaged log keeps that beside the old data, and a start refuses until it is repeated", async () => {
    const files = await crashed(async (connection) => {
      const write =
        "INSERT INTO write_check VALUES (1, x'') ON CONFLICT DO UPDATE SET filler = randomblob(8)";
      for (let n = 0; n < 12; n += 1) await connection.write((sql) => sql.run(write));
    });
    damageCommit(files.wal, 4);
    putFiles(data(), files);
    expect(restoreWith("rename:signal=KILL:when=3")).toBe("SIGKILL");
    const [kept = "", keptLog = ""] = keptNames().toSorted();
    expect(keptLog).toBe(`${kept}-wal`);
    expect(readFileSync(join(data(), keptLog)).equals(files.wal)).toBe(true);
    await expect(actions()).rejects.toMatchObject({ message: expect.stringContaining(kept) });
    await repeat();
    expect(await actions()).toEqual(["from.backup"]);
  });
});
