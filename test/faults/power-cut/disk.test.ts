import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { randomFrom } from "../../schema/compatibility/random-payloads.ts";
import { temporaryFolder } from "../../support/program.ts";
import { Disk, type Leaving } from "./disk.ts";
import type { Note } from "./notes.ts";

// The model that the power-cut tests rest on: what it keeps, and what it may lose.

let work: ReturnType<typeof temporaryFolder>;
let disk: Disk;
let root = 0;
let images = 0;

beforeEach(() => {
  work = temporaryFolder();
  mkdirSync(join(work.path, "disk"));
  writeFileSync(join(work.path, "disk/old"), "old");
  root = statSync(join(work.path, "disk")).ino;
  disk = new Disk(join(work.path, "disk"));
});
afterEach(() => work.remove());

const FILE = 1_000_000;

function did(kind: Note["kind"], given: Partial<Note> = {}): void {
  disk.apply({ kind, inode: FILE, at: 0, path: "", to: "", bytes: Buffer.alloc(0), end: 0, ...given });
}

const wrote = (text: string, at = 0): void => did("written", { bytes: Buffer.from(text), at });

/** What each file holds after a cut, by its name. */
function left(leaving: Leaving, random: () => number = () => 0): Record<string, string> {
  images += 1;
  const folder = join(work.path, `image-${images}`);
  disk.write(folder, leaving, random);
  return Object.fromEntries(
    readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "latin1")]),
  );
}

/** All that some cuts left of one file. */
function everLeft(name: string): ReadonlySet<string | undefined> {
  const random = randomFrom(1);
  return new Set(Array.from({ length: 200 }, () => left("some", random)[name]));
}

test("a new file exists once it and its folder are synced", () => {
  did("created", { path: "new" });
  wrote("text");
  expect(left("nothing")).toEqual({ old: "old" });
  expect(left("everything")).toEqual({ old: "old", new: "text" });
  did("synced");
  expect(everLeft("new")).toEqual(new Set([undefined, "text"]));
  did("synced", { inode: root });
  expect(left("nothing")).toEqual({ old: "old", new: "text" });
});

test("a rename is lost or done as a whole until the folder is synced", () => {
  did("created", { path: "new" });
  wrote("new");
  did("synced");
  did("synced", { inode: root });
  did("renamed", { path: "new", to: "old" });
  const random = randomFrom(1);
  const ever = new Set(Array.from({ length: 50 }, () => JSON.stringify(left("some", random))));
  expect(ever).toEqual(new Set(['{"new":"new","old":"old"}', '{"old":"new"}']));
  did("synced", { inode: root });
  expect(left("nothing")).toEqual({ old: "new" });
});

test("sectors that are not synced may be there, missing or torn, and a file may have any of its lengths", () => {
  did("created", { path: "new" });
  did("synced", { inode: root });
  wrote("a".repeat(1_024));
  did("synced");
  wrote("b".repeat(1_024));
  wrote("c", 1_024);
  const ever = [...everLeft("new")].map((text) => text!.replaceAll(/(.)\1*/g, "$1"));
  expect(ever).toEqual(expect.arrayContaining(["a", "b", "ab", "ba"]));
  expect(everLeft("new")).toContain(`${"b".repeat(512)}${"a".repeat(512)}`);
  expect(
    [...everLeft("new")].some((text) => /^b+a+$/.test(text!) && text!.lastIndexOf("b") % 512 !== 511),
  ).toBe(true);
  expect(new Set([...everLeft("new")].map((text) => text!.length))).toEqual(new Set([1_024, 1_025]));
  did("synced");
  expect(everLeft("new")).toEqual(new Set([`${"b".repeat(1_024)}c`]));
});

test("data of a failed fsync is stored by no later one, unless its page is written again", () => {
  did("created", { path: "new" });
  did("synced", { inode: root });
  wrote("first");
  did("synced");
  wrote("other");
  wrote("page", 4_096);
  did("sync-failed");
  wrote("!", 4_100);
  did("synced");
  expect(left("nothing")["new"]).toBe(`first${"\0".repeat(4_091)}page!`);
  expect(everLeft("new").size).toBeGreaterThan(1);
  did("cut", { at: 0 });
  wrote("anew");
  did("synced");
  expect(everLeft("new")).toEqual(new Set(["anew"]));
});
