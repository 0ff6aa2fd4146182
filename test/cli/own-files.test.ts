import { lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { serveHere } from "../support/server.ts";
import { useServed } from "../support/served.ts";

const { folder, data, run } = useServed(async ({ evreg }) => {
  mkdirSync(stopped, { mode: 0o700 });
  await (await serveHere(stopped, { dev: true })).stop();
  await evreg.actions.create({ action: "kept", application: "shop", schemata: { type: "object" } });
  symlinkSync(join(data, "evreg.db"), at("link.db"));
  symlinkSync(data, at("link-to-folder"));
  writeFileSync(join(stopped, "token"), "a token\n");
  writeFileSync(at("older-backup.db"), "an older backup");
  symlinkSync(at("older-backup.db"), at("newest.db"));
});
const at = (name: string): string => join(folder, name);
const stopped = at("stopped");

test.each([
  "data/evreg.db",
  "data/evreg.db-wal",
  "data/evreg.db-shm",
  "data/owner.json",
  "data/token",
  "data/evreg.db.before-v20",
  "data/../data/evreg.db",
  "link-to-folder/evreg.db",
  "link-to-folder/evreg.db-wal",
  "stopped/evreg.db",
  "stopped/evreg.db-wal",
  "stopped/token",
])("a backup does not take the place of %s", async (name) => {
  const before = lstatSync(at(name), { throwIfNoEntry: false });
  const outcome = await run(["backup", name, "--force"]);
  expect(outcome).toMatchObject({ code: 2, stdout: "" });
  expect(outcome.stderr).toContain(`${name} is a file of an evreg data folder, so nothing was written to it`);
  const after = lstatSync(at(name), { throwIfNoEntry: false });
  expect([after?.ino, after?.mtimeMs]).toEqual([before?.ino, before?.mtimeMs]);
});

test("a folder that no server has open is protected from the command that opens it", async () => {
  for (const name of ["stopped/evreg.db", "stopped/evreg.db.before-restore-1"]) {
    const outcome = await run(["backup", name, "--force", "--data", stopped]);
    expect(outcome).toMatchObject({ code: 2, stdout: "" });
  }
  expect(await run(["actions", "--data", stopped])).toMatchObject({ code: 0 });
});

test.each(["link.db", "newest.db", "/dev/null", "/dev/stdout"])(
  "a backup does not take the place of %s, which is no regular file",
  async (name) => {
    const path = name.startsWith("/") ? name : at(name);
    const before = lstatSync(path).mode;
    const outcome = await run(["backup", name, "--force"]);
    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toContain(`${name} is no regular file`);
    expect(outcome.stderr).toContain("- for stdout");
    expect(lstatSync(path).mode).toBe(before);
    expect(readFileSync(at("older-backup.db"), "utf8")).toBe("an older backup");
  },
);

test("a backup may have the name of a data file where no data folder is, and be replaced", async () => {
  mkdirSync(at("backups"));
  expect(await run("backup backups/evreg.db")).toMatchObject({ code: 0 });
  expect(await run("backup backups/evreg.db --force")).toMatchObject({ code: 0 });
  expect(await run("backup data/evreg-backup-1.db")).toMatchObject({ code: 0 });
});

test("no other command writes to a file of a data folder", async () => {
  writeFileSync(at("events.ndjson"), '{"action":"unknown","payload":{}}\n');
  const declared = { subscriptions: [{ application: "a", subscription: "s", action: "kept", mode: "pull" }] };
  writeFileSync(at("registry.json"), JSON.stringify(declared));
  const before = statSync(join(data, "evreg.db"));
  for (const words of [
    ["export", "-o", "data/evreg.db"],
    ["export", "-o", "link.db"],
    ["actions", "types", "--out", "data/owner.json"],
    ["publish", "--batch", "events.ndjson", "--rejects", "link-to-folder/evreg.db"],
    ["apply", "-f", "registry.json", "--secrets-file", "data/evreg.db"],
  ]) {
    const outcome = await run(words);
    expect([words, outcome.code]).toEqual([words, 2]);
    expect(outcome.stderr).toContain("is a file of an evreg data folder, so nothing was written to it");
  }
  const after = statSync(join(data, "evreg.db"));
  expect([after.ino, after.mode]).toEqual([before.ino, before.mode]);
  expect(await run("actions get kept")).toMatchObject({ code: 0 });
});
