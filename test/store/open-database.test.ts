import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { addressOf } from "../../src/store/libsql/thread/connection.ts";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const SOURCES = new URL("../../src/", import.meta.url);

it("opens a file by its path, whatever is in it", () => {
  const folder = join(scratch.path, "a b?c#d%41é日&vfs=x;'\"\\");
  mkdirSync(folder);
  const connection = openFile(join(folder, "evreg.db"));
  connection.close();
  expect(readdirSync(folder)).toContain("evreg.db");
  expect(readdirSync(scratch.path)).toHaveLength(1);
});

it("uses the system's own file layer, as the engine's takes a failed read for zeros", () => {
  expect(addressOf("/a/b.db")).toMatch(/^file:\/\/.*\/a\/b\.db\?vfs=(unix-excl|win32)$/);
});

it("is the only way in which evreg opens a file", () => {
  const openers = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((name) => {
    if (!name.endsWith(".ts")) return false;
    const text = readFileSync(new URL(name, SOURCES), "utf8");
    return (
      /^import (?!type\b).*(@libsql|"libsql)/m.test(text) || /(import|require)\("(@libsql|libsql)/.test(text)
    );
  });
  expect(openers).toEqual([join("store", "libsql", "thread", "connection.ts")]);
});
