import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { diskFinding, folderFindings } from "../../src/app/doctor-findings.ts";
import { runProgram } from "../support/program.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "evreg-findings-"));
  for (const name of ["token", "evreg.db", "evreg.db-wal", "owner.json"]) {
    writeFileSync(join(folder, name), "x", { mode: 0o600 });
  }
});
afterEach(() => rmSync(folder, { recursive: true }));

const findings = () => folderFindings(folder).filter(({ check }) => check === "files");
const open = (name: string, mode: number): void => chmodSync(join(folder, name), mode);

it.skipIf(process.platform === "win32")("files that others may read are reported with the remedy", () => {
  open("owner.json", 0o644);
  open("evreg.db", 0o644);
  expect(findings()).toEqual([]);
  // Which others can enter by now.
  chmodSync(folder, 0o755);
  open("evreg.db-wal", 0o620);
  expect(findings()).toMatchObject([
    { status: "warning", found: expect.stringContaining("evreg.db, evreg.db-wal.") },
  ]);
  chmodSync(folder, 0o700);
  open("token", 0o644);
  expect(findings()).toMatchObject([
    {
      found: expect.stringContaining("permissions: token."),
      remedy: expect.stringContaining(`Run: chmod 600 ${join(folder, "token")}.`),
    },
  ]);
  open("token", 0o600);
  expect(findings()).toEqual([]);
});

it.skipIf(process.platform === "win32")("compiled code is kept where nobody else can put any", async () => {
  const place = join(folder, "evreg", "compiled");
  const through = ["sh", "-c", 'umask 0; exec "$@"', "sh"];
  const env = { XDG_CACHE_HOME: folder };
  await runProgram(["--version"], { env, through });
  expect(statSync(place).mode & 0o777).toBe(0o700);
  chmodSync(place, 0o777);
  mkdirSync(join(place, "x"));
  await runProgram(["--version"], { env, through });
  expect(statSync(place).mode & 0o777).toBe(0o700);
});

it.each([
  [6.1, 6.3, "ok"],
  [1, 6.3, "problem"],
  [24, 100, "warning"],
  [9, 100, "problem"],
  [60, 1_000_000, "problem"],
  [900, 1_000_000, "ok"],
])("with %d MB of %d free the disk is: %s", (free, disk, status) => {
  const room = { freeBytes: free * 1e6, diskBytes: disk * 1e6, dataBytes: 200_000 };
  expect(diskFinding("/data", room)).toMatchObject({ check: "disk", status });
});
