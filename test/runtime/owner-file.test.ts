import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLogger, silentLogger } from "../../src/runtime/logger.ts";
import { type Owner, readOwner, writeOwner } from "../../src/runtime/owner-file.ts";

const owner: Owner = { pid: 4711, command: "serve", instance: "abc", started_at: "2026-01-01T00:00:00.000Z" };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "evreg-owner-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("writeOwner", () => {
  test("leaves one file that only its owner can read, and replaces an older one", () => {
    writeOwner(folder, { ...owner, instance: "older" }, silentLogger);
    writeOwner(folder, owner, silentLogger);
    expect(readdirSync(folder)).toEqual(["owner.json"]);
    expect(statSync(join(folder, "owner.json")).mode & 0o777).toBe(0o600);
    expect(readOwner(folder)).toMatchObject(owner);
  });

  test("follows no link that somebody else has put there", () => {
    const victim = join(folder, "victim");
    writeFileSync(victim, "precious");
    symlinkSync(victim, join(folder, "owner.json"));
    symlinkSync(victim, join(folder, `owner.json.${owner.pid}`));
    writeOwner(folder, owner, silentLogger);
    expect(readFileSync(victim, "utf8")).toBe("precious");
    expect(lstatSync(join(folder, "owner.json")).isSymbolicLink()).toBe(false);
    expect(readOwner(folder)).toMatchObject(owner);
  });

  test("that fails is only logged, with what to do, and leaves nothing behind", async () => {
    mkdirSync(join(folder, "owner.json", "inside"), { recursive: true });
    const lines: string[] = [];
    const target = { write: (text: string) => void lines.push(text) };
    writeOwner(folder, owner, await createLogger({ level: "warn", format: "json" }, target));
    expect(lines.join("")).toContain(folder);
    expect(lines.join("")).toMatch(/owner\.json cannot be written.*name this server to them with --url/);
    expect(readdirSync(folder)).toEqual(["owner.json"]);
  });
});
