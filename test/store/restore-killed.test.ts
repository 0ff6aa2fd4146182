import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../support/program.ts";
import { crashed, damageCommit, putFiles } from "./open-file.ts";
import { newAction, openStore } from "./opened-store.ts";
import { testOwner } from "./owner.ts";
import { useScratch } from "./scratch.ts";

// The promise under test: wherever a restore is killed, the next start has the data from before or those of the backup.

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
  const store = await openStore(folder);
  await newAction(store, action, Date.now());
  await store.close();
}

async function actions(): Promise<readonly string[]> {
  const store = await openStore(data);
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

  it.each([
    ["link", "before the old data has another name", 0],
    ["rename", "before the new data has its name", 1],
  ])("at its %s, %s, leaves the old data, and can be repeated", async (call, _, keptCopies) => {
    expect(restore(`${call}:signal=KILL:when=1`)).toBe("SIGKILL");
    expect(readdirSync(data).filter((name) => name.includes("unfinished"))).toHaveLength(1);
    expect(keptNames()).toHaveLength(keptCopies);
    expect(await actions()).toEqual(["was.there"]);
    expect(restore()).toBeNull();
    expect(await actions()).toEqual(["from.backup"]);
    expect(keptNames()).toHaveLength(keptCopies + 1);
  });

  it("keeps the old data where files cannot have two names", async () => {
    expect(restore("link:error=EPERM")).toBeNull();
    expect(await actions()).toEqual(["from.backup"]);
    expect(keptNames()).toHaveLength(1);
  });

  it("with a damaged log keeps that beside the old data, and a start refuses until it is repeated", async () => {
    const files = crashed((connection) => {
      const write =
        "INSERT INTO write_check VALUES (1, x'') ON CONFLICT DO UPDATE SET filler = randomblob(8)";
      for (let n = 0; n < 12; n += 1) connection.write((sql) => sql.run(write));
    });
    damageCommit(files.wal, 4);
    putFiles(data, files);
    expect(restore("rename:signal=KILL:when=3")).toBe("SIGKILL");
    const [kept = "", keptLog = ""] = keptNames().toSorted();
    expect(keptLog).toBe(`${kept}-wal`);
    expect(readFileSync(join(data, keptLog)).equals(files.wal)).toBe(true);
    await expect(actions()).rejects.toMatchObject({ message: expect.stringContaining(kept) });
    expect(restore()).toBeNull();
    expect(await actions()).toEqual(["from.backup"]);
  });
});

it("a server's start removes what an interrupted restore has left, and no other command does", async () => {
  const copy = `evreg.db.unfinished-${randomUUID()}`;
  writeFileSync(join(data, copy), "half");
  for (const command of ["events", "serve"]) {
    expect(readdirSync(data)).toEqual(["evreg.db", copy]);
    await (await openStore(data, { owner: testOwner(command) })).close();
  }
  expect(readdirSync(data)).toEqual(["evreg.db"]);
});

it("a start on a folder whose first restore was interrupted does not begin anew", async () => {
  rmSync(file);
  const copy = `evreg.db.unfinished-${randomUUID()}`;
  writeFileSync(join(data, copy), "half");
  await expect(actions()).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining(copy) as string,
  });
});

function canTrace(): boolean {
  return spawnSync("strace", ["-qq", "-o", "/dev/null", "-e", "inject=link:error=EIO", "true"]).status === 0;
}
