import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, it } from "vitest";
import { withFile } from "../../src/runtime/files.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { restore } from "../../src/store/libsql/files/restore.ts";
import { inspectMigrations } from "../../src/store/libsql/migration-status.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
import { testOwner } from "./owner.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
let folder = "";
const at = (name: string): string => join(folder, name);
const open = (): Promise<Store> => openLibsqlStore({ folder, owner: testOwner(), logger: silentLogger });

beforeEach(async () => {
  folder = join(scratch.path, "data");
  const store = await open();
  await store.catalog.createAction({ action: "was.there", application: "x", schemata: {} }, 1);
  await store.close();
});

async function isRefused(refusal: object): Promise<void> {
  const before = readdirSync(folder);
  await expect(open()).rejects.toMatchObject(refusal);
  expect(() => inspectMigrations(folder)).toThrow(expect.objectContaining(refusal));
  expect(readdirSync(folder)).toEqual(before);
}

/** A copy as a backup is, without the marks of a log. */
function putCopy(name: string, writtenS: number): void {
  copyFileSync(at("evreg.db"), at(name));
  utimesSync(at(name), writtenS, writtenS);
}

const GONE: readonly [string, (path: string) => void][] = [
  ["missing", (path) => rmSync(path)],
  ["empty", (path) => truncateSync(path, 0)],
];

describe.each(GONE)("a data file that is %s", (how, lose) => {
  const holds = how === "missing" ? "is missing" : "holds nothing";

  it.each([
    ["the first token", "token"],
    ["a token that a restore set aside", "token.before-restore-20260301T120000000Z"],
    ["who had the folder last", "owner.json"],
    ["a file of another program that read it", "evreg.db-shm"],
  ])("is not begun anew beside %s", async (_, name) => {
    lose(at("evreg.db"));
    writeFileSync(at(name), "x");
    const message = expect.stringMatching(
      new RegExp(
        `evreg\\.db ${holds}, but the folder has had data: it has ${name}\\. .*\`evreg restore FILE --data ${folder}\``,
      ),
    ) as unknown;
    await isRefused({ code: "unavailable", message });
    rmSync(at(name));
    await (await open()).close();
  });

  it("names the newest copy that can be restored", async () => {
    putCopy("evreg.db.before-v20", 1_000);
    putCopy("mine.db", 3_000);
    putCopy("newer-but-with-a-log.db", 4_000);
    writeFileSync(at("newer-but-with-a-log.db-wal"), "newest part");
    writeFileSync(at("another-program.db"), "SQLite format 3\0 of somebody");
    lose(at("evreg.db"));
    const message = expect.stringContaining(
      `restore the newest backup in the folder, or another, with \`evreg restore ${at("mine.db")} --data ${folder}\`.`,
    ) as unknown;
    await isRefused({ code: "unavailable", message });

    const content = [readFileSync(at("mine.db"))];
    const options = { folder, name: "mine.db", encryption: undefined, force: false, nowMs: 1 };
    await restore({ ...options, content: content.values() as unknown as AsyncIterable<Uint8Array> });
    const restored = await open();
    expect(await restored.catalog.findAction("was.there")).toBeDefined();
    await restored.close();
  });

  it("is begun where only files of others are", async () => {
    lose(at("evreg.db"));
    writeFileSync(at("notes.txt"), "mine");
    writeFileSync(at("another-program.db"), "SQLite format 3\0 of somebody");
    mkdirSync(at("folder.db"));
    await (await open()).close();
  });
});

const program = fileURLToPath(new URL("store-child.ts", import.meta.url));
const start = (command = process.execPath, ...more: string[]) =>
  spawnSync(command, [...more, program, "hold", folder], { input: "" });

describe("a first start that is killed", () => {
  const canTrace =
    spawnSync("strace", ["-qq", "-o", "/dev/null", "-e", "inject=link:error=EIO", "true"]).status === 0;

  it.skipIf(!canTrace)("can be repeated, wherever it was (skipped where strace may not trace)", () => {
    for (const [call, count] of [
      ["pwrite64", 3],
      ["pwrite64", 30],
      ["fsync,fdatasync", 6],
      ["ftruncate", 1],
      ["rename", 1],
    ] as const) {
      rmSync(folder, { recursive: true });
      const kill = `inject=${call}:signal=KILL:when=${count}`;
      const trace = ["-f", "-qq", "-o", "/dev/null", "-e", `trace=${call}`, "-e", kill, process.execPath];
      expect([call, count, start("strace", ...trace).signal]).toEqual([call, count, "SIGKILL"]);
      const again = start();
      expect(again.stdout.toString()).toBe("open\n");
    }
  });
});

function damage(offset: number): void {
  withFile(at("evreg.db"), "r+", (file) => writeSync(file, Buffer.from([0xff]), 0, 1, offset));
}

describe("a data file whose beginning is damaged", () => {
  it.each([0, 16, 18, 21, 47, 56, 60, 68])(
    "at byte %i is called damaged where the folder has had data, and can be replaced by a backup",
    async (offset) => {
      putCopy("mine.db", 3_000);
      damage(offset);
      const message = expect.stringMatching(
        /is damaged: it does not begin as evreg writes it.*evreg restore \S+\/mine\.db --force --data \S+\/data`\.$/,
      ) as unknown;
      await isRefused({ code: "invalid", message });

      const content = [readFileSync(at("mine.db"))];
      const options = { folder, name: "mine.db", encryption: undefined, force: true, nowMs: 1 };
      await restore({ ...options, content: content.values() as unknown as AsyncIterable<Uint8Array> });
      const restored = await open();
      expect(await restored.catalog.findAction("was.there")).toBeDefined();
      await restored.close();
    },
  );

  it("may be another program's where nothing else is in the folder, and is left alone", async () => {
    damage(0);
    linkSync(at("evreg.db"), at("a-second-name.db"));
    const message = expect.stringMatching(
      /was not made by evreg, or its beginning is damaged.*if evreg made it, move it away/,
    );
    await isRefused({ code: "usage", message });
  });
});

it("an empty data file with nothing else in the folder is begun anew with a warning", async () => {
  rmSync(folder, { recursive: true });
  mkdirSync(folder);
  writeFileSync(at("evreg.db"), "");
  const warnings: string[] = [];
  const logger = { ...silentLogger, warn: (_: object, message: string) => void warnings.push(message) };
  await (await openLibsqlStore({ folder, owner: testOwner(), logger })).close();
  expect(warnings).toEqual([expect.stringContaining("empty, so the data begin anew")]);
});
