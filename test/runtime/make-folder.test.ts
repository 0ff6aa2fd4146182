import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeFolder } from "../../src/runtime/files.ts";
import { temporaryFolder } from "../support/program.ts";

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

test("parent folders are created as well, and a second time changes nothing", () => {
  const path = join(folder.path, "a", "b", "c");
  makeFolder(path);
  makeFolder(path);
  if (process.platform !== "win32") expect(statSync(join(path, "..")).mode & 0o777).toBe(0o700);
  expect(statSync(path).isDirectory()).toBe(true);
});

test("below a file it fails with the system's message", () => {
  const file = join(folder.path, "file");
  writeFileSync(file, "");
  expect(() => makeFolder(join(file, "a", "b"))).toThrow(/ENOTDIR|ENOENT/);
});

test.skipIf(!existsSync("/proc/self"))("where no folder can be created it fails instead of looping", () => {
  expect(() => makeFolder("/proc/evreg/data")).toThrow("ENOENT");
});
