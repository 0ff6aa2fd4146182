import {
  copyFileSync,
  existsSync,
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
import { WriteConnection } from "../../src/store/libsql/connection.ts";
import type { Store } from "../../src/store/store.ts";
import { openFile } from "./open-file.ts";
import { eventOf, newAction, openStore, useScratch } from "./opened-store.ts";
import { testOwner } from "./owner.ts";
import { fileSql } from "../support/file-sql.ts";

// The promise under test: nothing more is acknowledged once the data file is not the one at its path.

const scratch = useScratch();
const file = (): string => join(scratch.path, "evreg.db");
const log = (): string => `${file()}-wal`;
const aside = (): string => join(scratch.path, "aside");

async function open(fatal: EvregError[] = []): Promise<Store> {
  const onFatal = (error: EvregError): void => void fatal.push(error);
  return openStore(scratch.path, { onFatal });
}

async function recordOne(store: Store): Promise<unknown> {
  const action = (await store.catalog.findAction("a.b")) ?? (await newAction(store));
  return store.events.record([eventOf(action.rowid)], 1);
}

/** What is left of a data file that was cut short. */
const leftOver = (): string =>
  join(
    scratch.path,
    readdirSync(scratch.path).find((name) => name.includes("cut-short"))!,
  );

const admitAny = (): void => undefined;
const FAILED = expect.objectContaining({ kind: "failed" }) as unknown;

describe("a data file that was taken away", () => {
  it.each<[string, () => void]>([
    ["moved", () => renameSync(file(), aside())],
    ["copied and moved", () => (copyFileSync(file(), aside()), renameSync(aside(), file()))],
    ["removed", () => rmSync(file())],
    ["led elsewhere", () => (renameSync(file(), aside()), symlinkSync(join(scratch.path, "x"), file()))],
  ])(
    "because it was %s takes no more writes or reads, and nothing is created in its place",
    async (_, act) => {
      const fatal: EvregError[] = [];
      const store = await open(fatal);
      await recordOne(store);
      act();
      const there = existsSync(file());
      const said = expect.stringContaining("evreg.db was removed, moved or replaced while evreg was running");
      await expect(recordOne(store)).rejects.toMatchObject({ message: said });
      await expect(store.events.find(1)).rejects.toMatchObject({ code: "unavailable" });
      expect(store.health()).toMatchObject({ status: "unavailable", reason: said });
      expect(fatal).toHaveLength(1);
      await store.close();
      expect(existsSync(file())).toBe(there);
    },
  );

  it("is intact in its new place, and leaves nothing that a file in its old place could mistake for its own", async () => {
    const backup = join(scratch.path, "backup");
    await (await open()).close();
    copyFileSync(file(), backup);
    const running = await open();
    for (let n = 0; n < 3; n += 1) await recordOne(running);
    renameSync(file(), aside());
    renameSync(backup, file());
    await expect(recordOne(running)).rejects.toMatchObject({ code: "unavailable" });
    await running.close();
    expect(fileSql(aside(), "SELECT count(*) AS n FROM event")).toEqual([{ n: 3 }]);

    const restored = await open();
    expect(await recordOne(restored)).toMatchObject([{ kind: "recorded", rowid: 1 }]);
    await restored.close();
    expect(fileSql(file(), "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  });

  it.each<[string, () => void]>([
    ["truncated", () => truncateSync(file(), statSync(file()).size - 4_096)],
    ["overwritten by a smaller one", () => copyFileSync(aside(), file())],
  ])("is noticed when it is %s, and set aside with no log moved into it", async (_, act) => {
    writeFileSync(aside(), "a smaller one");
    const fatal: EvregError[] = [];
    const store = await open(fatal);
    await recordOne(store);
    act();
    const cut = readFileSync(file());
    const said = expect.stringMatching(
      /evreg\.db was cut short while evreg was running; what is left of the data file is now evreg\.db\.cut-short-/,
    );
    await expect(recordOne(store)).rejects.toMatchObject({ code: "unavailable", message: said });
    expect(fatal).toEqual([expect.objectContaining({ message: said })]);
    await store.close();
    expect(readFileSync(leftOver()).equals(cut)).toBe(true);
    // Nothing is begun in its place.
    await expect(open()).rejects.toMatchObject({
      message: expect.stringContaining("evreg.db-wal, evreg.db.cut-short-"),
    });
    rmSync(log());
    const refused = { code: "unavailable", message: expect.stringContaining("evreg.db.cut-short-") };
    await expect(open()).rejects.toMatchObject(refused);
  });

  it("fails the commit in progress when it is removed", async () => {
    const connection = await openFile(file());
    const write = (): Promise<void> =>
      connection.write((sql) => {
        sql.run("INSERT INTO write_check VALUES (1, x'')");
        renameSync(file(), aside());
      });
    await expect(write()).rejects.toThrow(FAILED);
  });

  it("is not created anew for who opens it while another process replaces it", () => {
    expect(() => WriteConnection.open(file(), admitAny)).toThrow(expect.objectContaining({ kind: "in_use" }));
    expect(existsSync(file())).toBe(false);
  });
});

it("a server whose data file was taken away keeps the folder locked while it answers", async () => {
  const owner = testOwner();
  const answer = JSON.stringify({ data: { instance: owner.instance }, details: {} });
  const server = createServer((_request, response) => response.writeHead(503).end(answer));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  writeOwner(scratch.path, { ...owner, url }, silentLogger);
  const refusal = { code: "conflict", message: expect.stringContaining(url) as string };
  await expect(open()).rejects.toMatchObject(refusal);
  expect(existsSync(file())).toBe(false);
  expect(readOwner(scratch.path)?.instance).toBe(owner.instance);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  const message = expect.stringContaining("the folder has had data") as string;
  await expect(open()).rejects.toMatchObject({ message });
});
