import { renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FileGuard } from "../../src/store/libsql/thread/file-guard.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const file = (): string => join(scratch.path, "evreg.db");
const log = (): string => `${file()}-wal`;
const aside = (): string => join(scratch.path, "aside");
const later = (): number => Date.now() + 60_000;

describe("checking the folder instead of the files", () => {
  it.each([
    ["the file is removed", () => rmSync(file())],
    ["the file is moved", () => renameSync(file(), aside())],
    ["another file is put in its place", () => renameSync(log(), file())],
    ["the log is removed", () => rmSync(log())],
    ["another log is put in its place", () => renameSync(aside(), log())],
    ["the folder is moved", () => renameSync(scratch.path, `${scratch.path}.moved`)],
  ])("notices when %s", (_, act) => {
    for (const path of [file(), log(), aside()]) writeFileSync(path, "");
    const guard = new FileGuard(file(), undefined, later);
    // The clocks of some systems stand still for longer than all this takes.
    utimesSync(scratch.path, 1, 1);
    guard.check();
    // The folder's times are relied on from now on.
    guard.check();
    act();
    expect(() => guard.check()).toThrow(/was removed, moved or replaced/);
    expect(() => guard.check()).toThrow(/was removed, moved or replaced/);
    rmSync(`${scratch.path}.moved`, { recursive: true, force: true });
  });

  it("ignores other files", () => {
    for (const path of [file(), log()]) writeFileSync(path, "");
    const guard = new FileGuard(file(), undefined, later);
    guard.check();
    for (let round = 0; round < 3; round += 1) {
      guard.check();
      writeFileSync(aside(), "");
      guard.check();
      rmSync(aside());
    }
    guard.check();
  });

  it("does not rely on times so recent that a change could have the same", () => {
    for (const path of [file(), log()]) writeFileSync(path, "");
    for (const act of [() => rmSync(log()), () => rmSync(file())]) {
      for (let round = 0; round < 50; round += 1) {
        for (const path of [file(), log()]) writeFileSync(path, "");
        const guard = new FileGuard(file(), undefined);
        guard.check();
        act();
        expect(() => guard.check()).toThrow(/was removed, moved or replaced/);
      }
    }
  });
});
