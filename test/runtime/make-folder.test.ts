import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeFolder, removeCreated } from "../../src/runtime/files.ts";
import { temporaryFolder } from "../support/program.ts";

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

test("parent folders are created as well, and a second time changes nothing", () => {
  const path = join(folder.path, "a", "b", "c");
  const made = makeFolder(path);
  expect(made).toEqual([path, join(path, ".."), join(path, "..", "..")]);
  expect(makeFolder(path)).toEqual([]);
  if (process.platform !== "win32") expect(statSync(join(path, "..")).mode & 0o777).toBe(0o700);
  expect(statSync(path).isDirectory()).toBe(true);
});

test("created folders are removed again where they are empty", () => {
  const made = makeFolder(join(folder.path, "a", "b", "c"));
  writeFileSync(join(folder.path, "a", "file"), "");
  removeCreated(made);
  expect(readdirSync(join(folder.path, "a"))).toEqual(["file"]);
});

test("below a file it fails with the system's message", () => {
  const file = join(folder.path, "file");
  writeFileSync(file, "");
  expect(() => makeFolder(join(file, "a", "b"))).toThrow(/ENOTDIR|ENOENT/);
});

test.skipIf(!existsSync("/proc/self"))("where no folder can be created it fails instead of looping", () => {
  expect(() => makeFolder("/proc/evreg/data")).toThrow("ENOENT");
});
