import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { addressOf } from "../../src/store/libsql/connection.ts";

const SOURCES = new URL("../../src/", import.meta.url);

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
  expect(openers).toEqual([join("store", "libsql", "connection.ts")]);
});
