import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Action } from "../../src/domain/action.ts";
import { type EvregError, exitCodeFor } from "../../src/domain/error.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { WriteConnection } from "../../src/store/libsql/connection.ts";
import type { Store } from "../../src/store/store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { until } from "../support/until.ts";
import { openFile } from "./open-file.ts";
import { eventOf, newAction, openStore } from "./opened-store.ts";
import { testOwner } from "./owner.ts";
import { fileSql } from "../support/file-sql.ts";

const small = mountSmallDisk(8);

afterAll(() => small?.remove());

describe.skipIf(small === undefined)(
  "a disk that is full (a tmpfs of 8 MiB; skipped where none can be mounted)",
  () => {
    const disk = small?.path ?? "";
    const folder = join(disk, "data");
    const filler = join(disk, "filler");
    const clock = new ManualClock();
    let store: Store;
    let action: Action;
    const publish = (bytes = 1_000): ReturnType<Store["events"]["record"]> =>
      store.events.record([eventOf(action.rowid, "x".repeat(bytes))], clock.now());

    beforeAll(async () => {
      mkdirSync(folder);
      store = await openStore(folder, { clock });
      action = await newAction(store);
    });
    afterAll(() => store.close());

    it("refuses writes with a clear message, keeps answering reads, and recovers without a restart", async () => {
      await publish();
      writeFileSync(filler, Buffer.alloc(6 * 1024 * 1024));
      let recorded = 1;
      let refusal: unknown;
      for (let n = 0; n < 500; n += 1) {
        const pair = await Promise.allSettled([publish(20_000), publish(20_000)]);
        refusal = pair.map((outcome) => outcome.status === "rejected" && outcome.reason).find(Boolean);
        if (refusal !== undefined) break;
        recorded += 2;
      }
      expect(refusal).toMatchObject({
        code: "unavailable",
        message: expect.stringContaining("the disk is full"),
        details: { stored: false },
      });
      expect(store.health()).toMatchObject({
        status: "unavailable",
        reason: expect.stringContaining("the disk is full"),
      });
      await expect(publish()).rejects.toMatchObject({ code: "unavailable", details: { stored: false } });
      // Both of the refused pair are gone; nothing is half done.
      expect((await store.events.list({ order: "desc", limit: 1, page: 1 })).total).toBe(recorded);

      // While it is full, trying changes nothing.
      await clock.advance(1_000);
      await until("the trial to fail", () => clock.pending === 1);
      expect(store.health().status).toBe("unavailable");

      rmSync(filler);
      await clock.advance(1_000);
      await until("the store to heal", () => store.health().status === "ok");
      const [outcome] = await publish();
      expect(outcome).toMatchObject({ kind: "recorded", rowid: recorded + 1 });
      expect((await store.events.list({ order: "desc", limit: 1, page: 1 })).total).toBe(recorded + 1);
      await store.close();
      const whole = fileSql(join(folder, "evreg.db"), "PRAGMA integrity_check");
      expect(whole).toEqual([{ integrity_check: "ok" }]);
    });

    it("is reported at the start as well", async () => {
      const other = join(disk, "other");
      mkdirSync(other);
      const left = Number(spawnSync("stat", ["-f", "-c", "%a", disk], { encoding: "utf8" }).stdout);
      writeFileSync(filler, Buffer.alloc(Math.max(0, left - 4) * 4096));
      const refusal = expect.objectContaining({
        code: "unavailable",
        message: expect.stringMatching(/full.* Make room, and start it again\.$/),
      }) as EvregError;
      const error: unknown = await openStore(other).catch((refused: unknown) => refused);
      expect(error).toEqual(refusal);
      expect(exitCodeFor(error as EvregError)).toBe(6);
      rmSync(filler);
      await (await openStore(other)).close();
    });

    it("lets an older folder be read, though its owner cannot be written down", async () => {
      const before = await openStore(folder);
      const { total } = await before.events.list({ order: "desc", limit: 1, page: 1 });
      await before.close();
      // Takes all there is, to the last byte.
      spawnSync("dd", ["if=/dev/zero", `of=${filler}`, "bs=4096"]);
      const warnings: string[] = [];
      const logger = { ...silentLogger, warn: (_: object, message: string) => void warnings.push(message) };
      const full = await openStore(folder, { logger });
      expect((await full.events.list({ order: "desc", limit: 1, page: 1 })).total).toBe(total);
      expect(warnings).toEqual([expect.stringContaining("The file owner.json cannot be written")]);
      expect(readdirSync(folder).filter((name) => name.startsWith("owner"))).toEqual([]);
      await full.close();
      await (await openStore(folder, { owner: testOwner("events list"), logger })).close();
      expect(warnings, "a single command is soon gone").toHaveLength(1);
      rmSync(filler);
    });
  },
);

describe.skipIf(small === undefined)("a log found at a start on a full disk", () => {
  it("stays as it is, and is moved into the file before anything is committed after it", async () => {
    const disk = small?.path ?? "";
    for (const name of readdirSync(disk)) rmSync(join(disk, name), { recursive: true });
    const running = await openFile(join(disk, "running.db"));
    await running.write((sql) => {
      sql.run("CREATE TABLE kept (n INTEGER, filler BLOB)");
      for (let n = 0; n < 100; n += 1) sql.run("INSERT INTO kept VALUES (?, zeroblob(10000))", n);
    });
    // As a crash leaves them.
    for (const end of ["", "-wal"]) cpSync(join(disk, `running.db${end}`), join(disk, `left.db${end}`));
    running.close();
    const log = join(disk, "left.db-wal");
    const bytes = statSync(log).size;
    spawnSync("dd", ["if=/dev/zero", `of=${join(disk, "filler")}`, "bs=4096"]);
    const open = (): WriteConnection => WriteConnection.open(join(disk, "left.db"), () => undefined);
    expect(open).toThrow(expect.objectContaining({ kind: "full" }));
    expect(statSync(log).size).toBe(bytes);
    rmSync(join(disk, "filler"));
    const connection = open();
    await connection.write((sql) => sql.run("INSERT INTO kept VALUES (100, NULL)"));
    expect(connection.read.first("SELECT count(*) AS n FROM kept")).toEqual({ n: 101 });
    // The one page behind a header.
    expect(statSync(log).size).toBeLessThan(bytes / 10);
    connection.close();
  });
});
