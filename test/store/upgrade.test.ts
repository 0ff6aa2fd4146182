import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { eventChecksum } from "../../src/store/sql/events/payloads.ts";
import { fileTask } from "../../src/store/libsql/file-task.ts";
import { openDataFile } from "../../src/store/libsql/files/open-file.ts";
import { FORM } from "../../src/store/libsql/files/schema.ts";
import { inspectMigrations, migrate } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
import { lengthOf, someOf } from "../faults/length.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { claimRequest } from "../support/claim-request.ts";
import { ONE_ACTION, ONE_REVISION, writeOlderFile } from "../support/older-file.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { eventOf, openStore, payloadsIn, putBackup, useScratch } from "./opened-store.ts";
import { fileSql } from "../support/file-sql.ts";
import { startChild } from "./processes.ts";

const scratch = useScratch();
const NOW = Date.parse("2026-03-01T12:00:00.000Z");

const file = (): string => join(scratch.path, "evreg.db");
const copy = (): string => `${file()}.before-v${FORM}`;
const open = (folder = scratch.path): Promise<Store> => openStore(folder, { clock: new ManualClock(NOW) });

it("keeps the order of a whole subscription of form 21: its wait, and what is leased", async () => {
  const [waits, pulled] = [1, 2] as const;
  const subscriptions = [waits, pulled].map(
    (
      id,
    ) => `INSERT INTO subscription (rowid, application, subscription, action, handler, mode, active, created_ms, max_retries,
        ordered, retry_wait_until_ms, settings)
      VALUES (${id}, 'x', 's${id}', 'a', 'https://h.example/', '${id === pulled ? "pull" : "push"}', 1, 1, 0, 1,
        ${id === pulled ? "NULL" : NOW + 60_000}, '{"ordered":true,"on_exhausted":"block"}')`,
  );
  writeOlderFile(
    file(),
    21,
    ONE_ACTION,
    ONE_REVISION,
    ...subscriptions,
    "INSERT INTO subscription_secret (subscription_id, secret, bearer) SELECT rowid, 's', 'secret' FROM subscription",
    "INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload) VALUES (1, 1, 1, 1, x'7b7d'), (2, 1, 1, 1, x'7b7d'), (3, 1, 1, 1, x'7b7d')",
    `INSERT INTO delivery (event_id, subscription_id, created_ms, due_ms, sequence, failures)
      SELECT e.rowid, s.rowid, 1, 1, e.rowid, e.rowid = 1
      FROM subscription AS s CROSS JOIN event AS e ORDER BY s.rowid, e.rowid`,
    `INSERT INTO lease VALUES (4, 1, ${NOW}, ${NOW + 60_000}, 'one')`,
  );
  const store = await open();
  expect(await store.catalog.listRevisions({ action: "a", limit: 1 })).toMatchObject([
    { compatibility: "none" },
  ]);
  const planned = async (id: number) =>
    (await store.queue.list({ subscription: id, limit: 9, status: "pending" })).map((one) => [
      one.event_id,
      one.next_attempt_at,
    ]);
  expect(await planned(waits)).toEqual([
    [3, null],
    [2, null],
  ]);
  expect(await store.catalog.findSubscription(waits)).toMatchObject({ ordered: true, blocked_by: 1 });
  const sent = async (nowMs: number) => {
    const { claims } = await store.queue.claim(claimRequest({ nowMs }));
    return claims.map(({ subscription, event }) => [subscription.subscriptionId, event.eventId]);
  };
  expect(await sent(NOW)).toEqual([]);
  expect(await sent(NOW + 60_000)).toEqual([[waits, 1]]);
  const take = () =>
    store.queue.claimForConsumers({
      nowMs: NOW + 60_000,
      consumers: [[pulled, { consumer: "two", leaseMs: 1_000, maxClaims: 9 }]],
      maxClaims: 9,
      maxPayloadBytes: 100,
    });
  expect((await take()).claims).toEqual([]);
  await store.queue.releaseExpired(NOW + 60_000);
  expect((await take()).claims.map(({ event }) => event.eventId)).toEqual([1]);
  await store.close();
});

it("ends the tokens that form 21 has for browsers, and gives their numbers to no other", async () => {
  writeOlderFile(
    file(),
    21,
    `INSERT INTO token (name, scopes, hash, created_ms, parent_id)
      VALUES ('own', '["admin"]', 'own', 1, NULL), ('browser', '["admin"]', 'browser', 1, 1)`,
  );
  const store = await open();
  expect(await store.tokens.list()).toMatchObject([{ rowid: 1, name: "own", scopes: ["admin"] }]);
  expect(await store.tokens.find("browser")).toBeUndefined();
  expect(await store.tokens.create({ name: "next", scopes: [], hash: "next" }, NOW)).toMatchObject({
    rowid: 3,
  });
  await store.close();
});

describe.each([10, 21] as const)("a file of form %i", (form) => {
  it("is reported with what an upgrade would do, and not changed; and so is a backup of it", async () => {
    writeOlderFile(file(), form);
    const before = readFileSync(file());
    const room = { needed_bytes: expect.any(Number) as number, free_bytes: expect.any(Number) as number };
    const status = { file: file(), exists: true, current: form, latest: FORM, room };
    expect(inspectMigrations(scratch.path)).toEqual(status);
    expect(await migrate(scratch.path, { dryRun: true })).toEqual(status);
    expect(readdirSync(scratch.path)).toEqual(["evreg.db"]);
    expect(readFileSync(file()).equals(before)).toBe(true);

    const folder = join(scratch.path, "restored");
    expect(await putBackup(folder, before)).toMatchObject({ form, latest: FORM });
    await (await open(folder)).close();
    expect(inspectMigrations(folder)).toMatchObject({ current: FORM, latest: FORM });
  });

  it("stays beside the new one, which only its owner may read, gives no number again, counts its events and keeps its identity", async () => {
    writeOlderFile(
      file(),
      form,
      ONE_ACTION,
      ONE_REVISION,
      "INSERT INTO action (action, application, revision, created_ms) VALUES ('b', 'x', 1, 1)",
      `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10000)
        INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
        SELECT n, 1 + (n % 10 = 0), 1, n, x'7b7d' FROM n`,
      "UPDATE sqlite_sequence SET seq = 20000 WHERE name = 'event'",
    );
    expect(await migrate(scratch.path)).toMatchObject({ current: FORM, copy: copy() });
    expect(readdirSync(scratch.path).toSorted()).toEqual(["evreg.db", `evreg.db.before-v${FORM}`]);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(fileSql(copy(), "PRAGMA user_version")).toEqual([{ user_version: form }]);
    expect(fileSql(copy(), "SELECT count(*) AS n FROM event")).toEqual([{ n: 10_000 }]);
    expect(await fileTask("examineFile", file())).toMatchObject({ form: FORM, damaged_events: [] });
    expect(await migrate(scratch.path)).toEqual({ file: file(), exists: true, current: FORM, latest: FORM });

    const [identity] = fileSql(copy(), "SELECT id FROM data_identity");
    const store = await open();
    const page = { order: "asc" as const, limit: 2, page: 451 };
    const { events, total } = await store.events.list({ ...page, action: "b" });
    expect([events.map(({ rowid }) => rowid), total]).toEqual([[9_010, 9_020], 1_000]);
    expect((await store.events.list({ ...page, fromMs: 4_001 })).total).toBe(6_000);
    expect(await store.events.record([eventOf(1)], NOW)).toMatchObject([{ rowid: 20_001 }]);
    expect(store.dataId).toBe(identity?.["id"]);
    await store.close();
  });

  it("with a row that evreg could not have written is refused by its table, and left as it is", async () => {
    writeOlderFile(file(), form, ONE_ACTION, "UPDATE action SET action = 'a b'");
    await expect(open()).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/in the table action: .*CHECK .* Nothing was changed/) as string,
    });
    expect(readdirSync(scratch.path)).toEqual(["evreg.db"]);
    expect(inspectMigrations(scratch.path)).toMatchObject({ current: form });
  });
});

it("A file of an old form with a trigger or a view is refused", async () => {
  writeOlderFile(file(), 21, "CREATE VIEW tokens AS SELECT * FROM token");
  const message = expect.stringContaining("What differs: view tokens.") as string;
  await expect(open()).rejects.toMatchObject({ code: "invalid", message });
});

it("A file has the current schemas of evreg's own events once it is open, and keeps the former ones", async () => {
  await (await open()).close();
  fileSql(file(), `UPDATE action_revision SET schemata = '{"type":"object"}' WHERE action_id = 1`);
  for (let start = 1; start <= 2; start += 1) {
    const store = await open();
    const own = (await store.catalog.listActions({})).find(({ rowid }) => rowid === 1);
    expect(own).toMatchObject({ revision: 2, schemata: { additionalProperties: false } });
    await store.close();
  }
  const revisions = "SELECT revision FROM action_revision WHERE action_id = 1 ORDER BY 1";
  expect(fileSql(file(), revisions)).toEqual([{ revision: 1 }, { revision: 2 }]);
});

it("Since when a subscription of form 21 is paused or deactivated is known afterwards", async () => {
  const subscriptions = ["NULL", "'gone'"].map(
    (
      reason,
      at,
    ) => `INSERT INTO subscription (application, subscription, action, handler, active, disabled_reason, created_ms, max_retries,
        last_failure_ms)
      VALUES ('x', 's${at}', 'a', 'https://h.example/', 0, ${reason}, 1, 0, 40)`,
  );
  const changes = [
    [20, "active"],
    [30, "handler"],
  ].map(
    ([ms, member]) => `INSERT INTO audit (changed_ms, change, record_id, name, by_name, members)
      VALUES (${ms}, 'subscription.updated', 1, 'x/s0#a', 'ada', '[{"member":"${member}"}]')`,
  );
  writeOlderFile(file(), 21, ONE_ACTION, ONE_REVISION, ...subscriptions, ...changes);
  await (await open()).close();
  const since = fileSql(file(), "SELECT inactive_since_ms AS ms FROM subscription ORDER BY rowid");
  expect(since).toEqual([{ ms: 20 }, { ms: 40 }]);
});

it("A file of another old form is refused, with the version that brings it on", async () => {
  writeOlderFile(file(), 21, "PRAGMA user_version = 15");
  const before = readFileSync(file());
  const message = expect.stringContaining("has form 15, which this evreg cannot bring to form") as string;
  await expect(open()).rejects.toMatchObject({ code: "usage", message });
  expect(() => inspectMigrations(scratch.path)).toThrow("Start evreg 0.3.0 on it once");
  await expect(fileTask("examineFile", file())).rejects.toMatchObject({ code: "invalid", message });
  expect(readFileSync(file()).equals(before)).toBe(true);
});

const insert = (rowid: number, payload: Buffer, published: string): string =>
  `INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload, checksum)
    VALUES (${rowid}, 1, 1, 1, x'${payload.toString("hex")}', ${eventChecksum(rowid, 1, Buffer.from(published))})`;

describe("payloads of form 21, in which names of members are shortened", () => {
  const SCHEMA = '{"properties":{"customer":true,"total":{"properties":{"deep":{}}}}}';
  const SHORT = '{"customer":1,"total":{"deep":[]},"other":"customer"}';
  const NAMES = `INSERT INTO payload_names VALUES (1, 1, '["customer","total","deep"]')`;
  const LONG = `{"customer":"${"x".repeat(5_000)}"}`;
  /** As version 0.3.0 stores it. */
  const stored = Buffer.from(
    SHORT.replace('"customer":', "\u0001").replace('"total":', "\u0002").replace('"deep":', "\u0003"),
  );

  const all = [
    ONE_ACTION,
    `INSERT INTO action_revision (action_id, revision, schemata, created_ms) VALUES (1, 1, '${SCHEMA}', 1)`,
    insert(1, stored, SHORT),
    insert(2, Buffer.from(LONG), LONG),
    insert(3, Buffer.from("[]"), "[]"),
  ];

  it("are as they were published afterwards, also where there are more than are read at once", async () => {
    const more = Array.from({ length: 1_050 }, (_, n) => `{"customer":${n},"pad":"${"p".repeat(n % 90)}"}`);
    const inserts = more.map((text, n) =>
      insert(n + 4, Buffer.from(text.replace('"customer":', "\u0001")), text),
    );
    writeOlderFile(file(), 21, ...all, NAMES, ...inserts);
    expect(await fileTask("examineFile", file())).toMatchObject({ form: 21, damaged_events: [] });
    const store = await open();
    const found: (string | undefined)[] = [];
    for (let page = 1; page <= 3; page += 1) found.push(...(await payloadsIn(store, page)));
    expect(found).toEqual([SHORT, LONG, "[]", ...more]);
    await store.close();
    expect(await fileTask("examineFile", file())).toMatchObject({ form: FORM, damaged_events: [] });
    const [row] = fileSql(file(), "SELECT CAST(payload AS TEXT) AS payload FROM event WHERE rowid = 1");
    expect(row).toEqual({ payload: SHORT });
  });

  it("stay damaged where they were", async () => {
    writeOlderFile(file(), 21, ...all, NAMES.replace("customer", "custoner"));
    expect(await fileTask("examineFile", file())).toMatchObject({ damaged_events: [1] });
    const store = await open();
    expect(await payloadsIn(store)).toEqual([undefined, LONG, "[]"]);
    await store.close();
    expect(await fileTask("examineFile", file())).toMatchObject({ damaged_events: [1] });
  });
});

const small = mountSmallDisk(30);
afterAll(() => small?.remove());

describe.skipIf(small === undefined)(
  "a file of an older form on a small disk (a tmpfs of 30 MiB; skipped where none can be mounted)",
  () => {
    const folder = small?.path ?? "";
    const onDisk = join(folder, "evreg.db");

    it("is not upgraded without the room that it says is needed, by a dry run too, and nothing is left", async () => {
      const filler = "INSERT INTO filler VALUES (randomblob(12000000))";
      writeOlderFile(onDisk, 10, "CREATE TABLE filler (x)", filler, "DROP TABLE filler");
      const before = readFileSync(onDisk);
      const message = expect.stringMatching(
        /no room .* takes up to 3\d MB on its disk, and 1[89] MB are free/,
      );
      const refusal = { code: "unavailable", message: message as unknown };
      await expect(migrate(folder, { dryRun: true })).rejects.toMatchObject(refusal);
      await expect(migrate(folder)).rejects.toMatchObject(refusal);
      await expect(open(folder)).rejects.toMatchObject(refusal);
      expect(readdirSync(folder)).toEqual(["evreg.db"]);
      expect(readFileSync(onDisk).equals(before)).toBe(true);
      rmSync(onDisk);
    });

    it("leaves no part of a new one where the disk becomes full", async () => {
      writeOlderFile(onDisk, 21, ONE_ACTION, ONE_REVISION);
      fileSql(
        onDisk,
        "INSERT INTO event (action_id, revision, timestamped_ms, payload) VALUES (1, 1, 1, randomblob(16000000))",
      );
      await expect(openDataFile(onDisk, undefined, [])).rejects.toThrow(
        "the disk is full. Nothing was changed.",
      );
      expect(readdirSync(folder)).toEqual(["evreg.db"]);
    });
  },
);

describe("an upgrade that is killed", () => {
  it.each([10, 21] as const)(
    "leaves the file of form %i or the new one, whole",
    async (form) => {
      const { kills, events } = lengthOf("store/upgrade");
      const series = `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${events})`;
      const eventRows = `INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
      SELECT n, 1, 1, ${NOW}, CAST('{"n":' || n || '}' AS BLOB) FROM n`;
      const digest =
        "SELECT count(*) AS events, sum(CAST(substr(CAST(payload AS TEXT), 6) AS INTEGER)) AS sum FROM event";
      writeOlderFile(file(), form, ONE_ACTION, ONE_REVISION, `${series} ${eventRows}`);
      const whole = fileSql(file(), digest);
      const before = readFileSync(file());
      for (const delayMs of someOf([0, 40, 80, 120, 160, 240, 320, 400, 500, 700], kills)) {
        const child = startChild("store-child.ts", [scratch.path]);
        const hasBegun = (): boolean =>
          readdirSync(scratch.path).some((name) => /unfinished|before/.test(name));
        while (!hasBegun() && child.process.exitCode === null) await sleep(1);
        await sleep(delayMs);
        child.process.kill("SIGKILL");
        await child.ended();
        expect(fileSql(file(), digest), `after ${delayMs} ms`).toEqual(whole);
        expect(fileSql(file(), "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
        await (await open()).close();
        expect(inspectMigrations(scratch.path)).toMatchObject({ current: FORM });
        expect(readdirSync(scratch.path).filter((name) => name.includes("unfinished"))).toEqual([]);
        expect(fileSql(file(), digest)).toEqual(whole);
        expect(fileSql(copy(), digest)).toEqual(whole);
        rmSync(copy());
        writeFileSync(file(), before);
      }
    },
    120_000,
  );
});
