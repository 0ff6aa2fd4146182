import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { EvregError } from "../../src/domain/error.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { readOwner, writeOwner } from "../../src/runtime/owner-file.ts";
import { admitFile } from "../../src/store/libsql/files/open-file.ts";
import { inspectMigrations } from "../../src/store/libsql/migration-status.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import { Connection } from "../../src/store/libsql/thread/connection.ts";
import type { Store } from "../../src/store/store.ts";
import { openFile } from "./open-file.ts";
import { testOwner } from "./owner.ts";
import { rawSql } from "./processes.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const file = (): string => join(scratch.path, "evreg.db");
const log = (): string => `${file()}-wal`;
const aside = (): string => join(scratch.path, "aside");

async function open(fatal: EvregError[] = []): Promise<Store> {
  const onFatal = (error: EvregError): void => void fatal.push(error);
  return openLibsqlStore({ folder: scratch.path, owner: testOwner(), logger: silentLogger, onFatal });
}

async function recordOne(store: Store): Promise<unknown> {
  const action =
    (await store.catalog.findAction("a.b")) ??
    (await store.catalog.createAction({ action: "a.b", application: "x", schemata: {} }, 1));
  return store.events.record([{ actionId: action.rowid, revision: 1, payload: Buffer.from("{}") }], 1);
}

const admitAny = (): void => undefined;
const FATAL = expect.objectContaining({ kind: "fatal" }) as unknown;

const total = async (store: Store): Promise<number> =>
  (await store.events.list({ order: "asc", limit: 1, page: 1 })).total;

describe("a data file that was moved, removed or truncated", () => {
  const ways: [how: string, named: string, act: () => void, back: () => void][] = [
    ["was moved", "evreg.db ", () => renameSync(file(), aside()), () => renameSync(aside(), file())],
    [
      "was replaced",
      "evreg.db ",
      () => {
        renameSync(file(), aside());
        copyFileSync(aside(), file());
      },
      () => renameSync(aside(), file()),
    ],
    ["lost its log", "evreg.db-wal,", () => rmSync(log()), () => undefined],
    [
      "had its log replaced",
      "evreg.db-wal,",
      () => {
        rmSync(log());
        writeFileSync(log(), "");
      },
      () => undefined,
    ],
  ];

  it.each(ways)(
    "takes no more writes because it %s, reports that, and keeps all that was acknowledged",
    async (...way) => {
      const [, named, act, back] = way;
      const fatal: EvregError[] = [];
      const store = await open(fatal);
      await recordOne(store);
      const { actionId } = (await store.catalog.findAction("a.b")) ?? { actionId: 0 };
      act();
      const event = { actionId, revision: 1, payload: Buffer.from("{}") };
      await expect(store.events.record([event], 1)).rejects.toMatchObject({
        code: "unavailable",
        message: expect.stringContaining(named),
      });
      await expect(store.events.find(1)).rejects.toMatchObject({ code: "unavailable" });
      expect(store.health()).toMatchObject({
        status: "unavailable",
        reason: expect.stringContaining("removed, moved or replaced while evreg was running"),
      });
      expect(fatal).toHaveLength(1);
      await store.close();

      back();
      const again = await open();
      expect(await total(again)).toBe(1);
      await again.close();
    },
  );

  it("is intact in its new place, and leaves nothing that a file in its old place could mistake for its own", async () => {
    const backup = join(scratch.path, "backup");
    const store = await open();
    await store.catalog.createAction({ action: "a.b", application: "x", schemata: {} }, 1);
    await store.close();
    copyFileSync(file(), backup);

    const fatal: EvregError[] = [];
    const running = await open(fatal);
    for (let n = 0; n < 3; n += 1) await recordOne(running);
    renameSync(file(), aside());
    renameSync(backup, file());
    await expect(recordOne(running)).rejects.toMatchObject({ code: "unavailable" });
    expect(fatal).toHaveLength(1);
    await running.close();
    expect(rawSql(aside(), "SELECT count(*) AS n FROM event")).toEqual([{ n: 3 }]);

    const restored = await open();
    expect(await total(restored)).toBe(0);
    expect(await recordOne(restored)).toMatchObject([{ kind: "recorded", rowid: 1 }]);
    await restored.close();
    expect(rawSql(file(), "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  });

  it("is not created anew while the log of the one before is there", async () => {
    await (await open()).close();
    rmSync(file());
    writeFileSync(log(), "newest part");
    await expect(open()).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("Put the data file back beside it"),
    });
    expect(existsSync(file())).toBe(false);
    writeFileSync(log(), "");
    await (await open()).close();
  });

  it("is noticed when it is removed, by reads too, and nothing is created in its place", async () => {
    const fatal: EvregError[] = [];
    const store = await open(fatal);
    await recordOne(store);
    rmSync(file());
    await expect(store.events.find(1)).rejects.toMatchObject({ code: "unavailable" });
    expect(fatal).toHaveLength(1);
    await expect(recordOne(store)).rejects.toMatchObject({ code: "unavailable" });
    await store.close();
    expect(existsSync(file())).toBe(false);
  });

  it("is noticed when it is truncated, before anything more is acknowledged", async () => {
    const fatal: EvregError[] = [];
    const store = await open(fatal);
    await recordOne(store);
    const cut = statSync(file()).size - 4_096;
    truncateSync(file(), cut);
    const said = expect.stringMatching(
      /evreg\.db was cut from \d+ to \d+ bytes while evreg was running; what is left of the data file is now evreg\.db\.cut-short-/,
    );
    await expect(recordOne(store)).rejects.toMatchObject({ code: "unavailable", message: said });
    expect(fatal).toEqual([expect.objectContaining({ message: said })]);
    await store.close();
    // The log was not moved into what is left, and nothing is begun in its place.
    const left = readdirSync(scratch.path).find((name) => name.includes("cut-short"));
    expect(statSync(join(scratch.path, left!)).size).toBe(cut);
    const refused = { code: "unavailable", message: expect.stringContaining("was cut short while") };
    await expect(open()).rejects.toMatchObject(refused);
    rmSync(log());
    await expect(open()).rejects.toMatchObject(refused);
    expect(() => inspectMigrations(scratch.path)).toThrow(expect.objectContaining(refused));
  });

  it.each([
    ["wholly", () => 0],
    ["at a half", (size: number) => Math.floor(size / 2)],
  ])(
    "takes no more writes when its log is truncated, %s, and has nothing of it moved into the file",
    async (_, to) => {
      const fatal: EvregError[] = [];
      const store = await open(fatal);
      for (let n = 0; n < 20; n += 1) await recordOne(store);
      const before = readFileSync(file());
      truncateSync(log(), to(statSync(log()).size));
      const said = expect.stringMatching(
        /evreg\.db-wal, .* was cut short while evreg was running.*evreg\.db\.cut-short-/,
      );
      await expect(recordOne(store)).rejects.toMatchObject({ code: "unavailable", message: said });
      expect(fatal).toEqual([expect.objectContaining({ message: said })]);
      await store.close();
      const left = readdirSync(scratch.path).find((name) => name.includes("cut-short"))!;
      expect(readFileSync(join(scratch.path, left)).equals(before)).toBe(true);
      await expect(open()).rejects.toMatchObject({
        code: "unavailable",
        message: expect.stringContaining("was cut short while"),
      });
    },
  );

  it("is not mistaken for truncated by a rollback, nor when its log restarts", () => {
    const connection = openFile(file());
    const write = (bytes: number): void =>
      connection.write((sql) => {
        sql.run(
          "INSERT INTO write_check VALUES (1, zeroblob(?)) ON CONFLICT DO UPDATE SET filler = excluded.filler",
          bytes,
        );
      });
    // Each is undone by `work`, having spilled into the log, and the last ones begin the log anew.
    for (const bytes of [1, 9_000, 700_000, 1, 5_000_000, 12_000_000, 1, 400_000, 1]) {
      write(bytes);
      const undone = (): void =>
        connection.write((sql) => {
          sql.run("UPDATE write_check SET filler = zeroblob(15000000)");
          throw new Error("undone");
        });
      expect(undone).toThrow("undone");
    }
    write(1);
    truncateSync(log(), 32);
    expect(() => write(1)).toThrow(FATAL);
    connection.close();
  });

  it("fails the commit in progress when it is removed", async () => {
    const connection = openFile(file());
    const write = (): void =>
      connection.write((sql) => {
        sql.run("INSERT INTO write_check VALUES (1, x'')");
        renameSync(file(), aside());
      });
    expect(write).toThrow(expect.objectContaining({ name: "EngineFailure", kind: "fatal" }));
  });

  it("is not created anew for a connection that replaces another", async () => {
    const connection = Connection.open(file(), (sql) => admitFile(sql, file()));
    const { file: expected } = connection;
    renameSync(file(), aside());
    expect(() => Connection.open(file(), admitAny, expected)).toThrow(FATAL);
    expect(existsSync(file())).toBe(false);
    writeFileSync(file(), "");
    expect(() => Connection.open(file(), admitAny, expected)).toThrow(FATAL);
  });

  it("may be a link, which is followed and watched too", async () => {
    const elsewhere = join(scratch.path, "elsewhere");
    mkdirSync(elsewhere);
    writeFileSync(join(elsewhere, "real.db"), "");
    symlinkSync(join(elsewhere, "real.db"), file());
    const store = await open();
    await recordOne(store);
    expect(readdirSync(elsewhere).toSorted()).toEqual(["real.db", "real.db-wal"]);
    rmSync(join(elsewhere, "real.db-wal"));
    await expect(recordOne(store)).rejects.toMatchObject({
      message: expect.stringContaining("real.db-wal,"),
    });
    await store.close();
    const again = await open();
    expect(await total(again)).toBe(1);
    rmSync(file());
    symlinkSync(join(elsewhere, "other.db"), file());
    await expect(recordOne(again)).rejects.toMatchObject({ message: expect.stringContaining("evreg.db ") });
    await again.close();
  });
});

describe("a server whose data file was taken away", () => {
  it("keeps the folder locked while it answers", async () => {
    const owner = testOwner();
    const server = createServer((_request, response) =>
      response.writeHead(503).end(JSON.stringify({ data: { instance: owner.instance }, details: {} })),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      writeOwner(scratch.path, { ...owner, url }, silentLogger);
      await expect(open()).rejects.toMatchObject({
        code: "conflict",
        message: expect.stringContaining(url),
      });
      expect(existsSync(file())).toBe(false);
      expect(readOwner(scratch.path)?.instance).toBe(owner.instance);
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
    await expect(open()).rejects.toMatchObject({
      message: expect.stringContaining("the folder has had data"),
    });
  });
});
