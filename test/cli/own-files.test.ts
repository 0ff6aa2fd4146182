import { lstatSync, mkdirSync, symlinkSync } from "node:fs";
import { expect, test } from "vitest";
import { register } from "../support/records.ts";
import { serveHere } from "../support/server.ts";
import { useServed } from "../support/served.ts";

const { data, at, read, write, expectEach } = useServed(async ({ evreg }) => {
  mkdirSync(at("stopped"), { mode: 0o700 });
  await (await serveHere(at("stopped"), { dev: true })).stop();
  await register(evreg, "kept");
  symlinkSync(at("data/evreg.db"), at("link.db"));
  symlinkSync(data, at("link-to-folder"));
  write("stopped/token", "a token\n");
  write("older-backup.db", "an older backup");
  symlinkSync(at("older-backup.db"), at("newest.db"));
});

const OWN = /is a file of an evreg data folder, so nothing was written to it/;

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
  await expectEach([[`backup ${name} --force`, 2, "", OWN]]);
  const after = lstatSync(at(name), { throwIfNoEntry: false });
  expect([after?.ino, after?.mtimeMs]).toEqual([before?.ino, before?.mtimeMs]);
});

test("a folder that no server has open is protected from the command that opens it", async () => {
  await expectEach([
    ["backup stopped/evreg.db --force --data stopped", 2, ""],
    ["backup stopped/evreg.db.before-restore-1 --force --data stopped", 2, ""],
    ["actions --data stopped", 0],
  ]);
});

test.each(["link.db", "newest.db", "/dev/null", "/dev/stdout"])(
  "a backup does not take the place of %s, which is no regular file",
  async (name) => {
    const path = name.startsWith("/") ? name : at(name);
    const before = lstatSync(path).mode;
    const told = new RegExp(`${name} is no regular file[^]*- for stdout`);
    await expectEach([[`backup ${name} --force`, 2, "", told]]);
    expect(lstatSync(path).mode).toBe(before);
    expect(read("older-backup.db")).toBe("an older backup");
  },
);

test("a backup may have the name of a data file where no data folder is, and be replaced", async () => {
  mkdirSync(at("backups"));
  await expectEach([
    ["backup backups/evreg.db", 0],
    ["backup backups/evreg.db --force", 0],
    ["backup data/evreg-backup-1.db", 0],
  ]);
});
