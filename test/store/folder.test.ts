import { spawnSync } from "node:child_process";
import {
  accessSync,
  chmodSync,
  constants,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readOwner } from "../../src/runtime/owner-file.ts";
import { newAction, openStore, useScratch } from "./opened-store.ts";
import { testOwner } from "./owner.ts";
import { fileSql } from "../support/file-sql.ts";
import { sqlElsewhere, startChild } from "./processes.ts";

/** Root's right to read and write anywhere. It is given up, as another user could not get to Node in a private clone. */
const OVERRIDE = "-dac_override,-dac_read_search";
const GIVE_UP_OVERRIDE = ["setpriv", `--inh-caps=${OVERRIDE}`, `--bounding-set=${OVERRIDE}`];
const mayWrite = (path: string): boolean => {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
};
const modeOf = (path: string): number => statSync(path).mode & 0o777;

describe("the data folder", () => {
  const scratch = useScratch();

  it("is made for its owner only, with the names that paths may have, names who has it, and is one file once it is closed", async () => {
    const folder = join(scratch.path, "deep", "größe 100% #1?&vfs=x;'\"\\");
    const owner = testOwner("actions list");
    const store = await openStore(folder, { owner });
    await newAction(store, "a");
    expect(readOwner(folder)).toMatchObject(owner);
    expect(modeOf(folder)).toBe(0o700);
    expect(modeOf(join(folder, "evreg.db"))).toBe(0o600);
    expect(modeOf(join(folder, "evreg.db-wal"))).toBe(0o600);
    await store.close();
    expect(readdirSync(folder)).toEqual(["evreg.db"]);
    const actions = fileSql(join(folder, "evreg.db"), "SELECT action FROM action WHERE built_in = 0");
    expect(actions).toEqual([{ action: "a" }]);
  });

  it("is refused where it is not a folder", async () => {
    const file = join(scratch.path, "file");
    writeFileSync(file, "mine");
    for (const path of [file, join(file, "inside")]) {
      await expect(openStore(path)).rejects.toMatchObject({
        code: "usage",
        message: expect.stringContaining(path),
      });
    }
    expect(readFileSync(file, "utf8")).toBe("mine");
  });

  it("is refused where nothing can be written, with what to do", async (context) => {
    chmodSync(scratch.path, 0o500);
    const [setpriv = "", ...options] = GIVE_UP_OVERRIDE;
    const mustGiveUp = mayWrite(scratch.path);
    if (mustGiveUp && spawnSync(setpriv, [...options, "true"]).status !== 0) {
      context.skip("this user may write anywhere, and setpriv cannot take that away");
    }
    const become = mustGiveUp ? { shell: `set -- ${GIVE_UP_OVERRIDE.join(" ")} "$@"` } : {};
    const child = startChild("store-child.ts", [scratch.path], become);
    expect(JSON.parse(await child.line())).toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(`${scratch.path}.*change its owner or permissions`),
    });
    expect(readdirSync(scratch.path)).toEqual([]);
  });
});

describe("the lock", () => {
  const scratch = useScratch();

  it("keeps other programs from writing and from reading", async () => {
    const store = await openStore(scratch.path);
    const file = join(scratch.path, "evreg.db");
    expect(() => sqlElsewhere(file, "SELECT count(*) FROM action")).toThrow("SQLITE_BUSY");
    expect(() => sqlElsewhere(file, "DELETE FROM action")).toThrow("SQLITE_BUSY");
    await newAction(store, "a");
    expect(() => sqlElsewhere(file, "PRAGMA wal_checkpoint", "SELECT 1 FROM action")).toThrow("SQLITE_BUSY");
    await store.close();
    expect(fileSql(file, "SELECT action FROM action WHERE built_in = 0")).toEqual([{ action: "a" }]);
  });

  it("lets exactly one of two first starts in, and others once that has ended", async () => {
    const children = [1, 2].map(() => startChild("store-child.ts", [scratch.path]));
    const lines = await Promise.all(children.map((child) => child.line()));
    expect(lines.filter((line) => line === "open")).toHaveLength(1);
    expect(lines.filter((line) => line.includes('"conflict"'))).toHaveLength(1);
    await expect(openStore(scratch.path)).rejects.toMatchObject({ code: "conflict" });
    for (const child of children) child.process.stdin?.end();
    await Promise.all(children.map((child) => child.ended()));
    await (await openStore(scratch.path)).close();
  });
});
