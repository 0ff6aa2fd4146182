import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { RawJson } from "../../src/json/raw-json.ts";
import { KeptLog } from "../support/kept-log.ts";
import { parseMetrics, valueOf } from "../support/prometheus.ts";
import { openReceiver } from "../support/open-receiver.ts";
import { until } from "../support/until.ts";
import { fileSql } from "../support/file-sql.ts";
import { dataFolder, LOOPBACK, ORDER_PLACED, start } from "./setup.ts";

const { action } = ORDER_PLACED;

/** Changes one bit of this text wherever it is in the file. */
function flip(file: string, text: string): void {
  const bytes = readFileSync(file);
  let places = 0;
  for (let at = bytes.indexOf(text); at !== -1; at = bytes.indexOf(text, at + 1)) {
    bytes[at]! ^= 1;
    places += 1;
  }
  expect(places).toBeGreaterThan(0);
  writeFileSync(file, bytes);
}

test("a damaged or misplaced payload is logged, and neither answered nor sent", async () => {
  const receiver = await openReceiver();
  const data = dataFolder();
  const file = join(data, "evreg.db");
  const first = await start(data);
  await first.evreg.actions.create(ORDER_PLACED);
  for (const id of ["one-1", "two-2", "three", "four-4", "five-5"]) {
    await first.evreg.events.publish({
      action,
      payload: RawJson.fromValue({ id }),
      idempotency_key: `key ${id.slice(-1)}`,
    });
  }
  await first.stop();
  flip(file, "two-2");
  // The payload of another event, another action, and a payload that nobody could publish.
  fileSql(
    file,
    "PRAGMA ignore_check_constraints = ON",
    "UPDATE event SET payload = (SELECT payload FROM event WHERE rowid = 1) WHERE rowid = 3",
    "UPDATE event SET action_id = 1 WHERE rowid = 4",
    "UPDATE event SET payload = zeroblob(16777217) WHERE rowid = 5",
    "UPDATE event SET checksum = NULL WHERE rowid = 1",
  );

  const logger = new KeptLog();
  const { evreg } = await start(data, { delivery: LOOPBACK }, { logger });
  const listed = await evreg.events.list({ order: "asc" });
  expect(listed.data.map(({ rowid, payload }) => [rowid, payload.value()])).toEqual([
    [1, { id: "one-1" }],
    [2, null],
    [3, null],
    [4, null],
    [5, null],
  ]);
  expect(listed.meta).toEqual({ total: 5, page: 1, per_page: 50, damaged: [2, 3, 4, 5] });
  for (const id of [2, 3, 5]) {
    await expect(evreg.events.get(id)).rejects.toMatchObject({
      code: "internal",
      message: expect.stringMatching(new RegExp(`^Event ${id} is damaged .*Restore a backup`)),
      details: { event: id },
    });
  }

  // Nothing shows any more that it is the same, and nothing is stored twice.
  const repeated = { action, payload: RawJson.fromValue({ id: "two-2" }), idempotency_key: "key 2" };
  await expect(evreg.events.publish(repeated)).rejects.toMatchObject({ code: "conflict" });

  const subscription = { application: "x", subscription: "y", action, handler: receiver.url, max_retries: 0 };
  const { data: made } = await evreg.subscriptions.create(subscription);
  await evreg.replays.start(made.rowid, { from: "2020-01-01T00:00:00Z", status: "missed" });
  await evreg.events.publish({ action, payload: RawJson.fromValue({ id: "after" }) });
  const failed = async () => (await evreg.deliveries.list({ status: "failed" })).data;
  await until("three that failed", async () => (await failed()).length === 3);
  expect(
    (await failed()).map(({ event_id, attempt, last_error }) => [event_id, attempt, last_error]),
  ).toEqual([
    [5, 1, "event_damaged"],
    [3, 1, "event_damaged"],
    [2, 1, "event_damaged"],
  ]);
  const sent = await receiver.received(2);
  expect(
    sent.map(({ body }) => (JSON.parse(body.toString()) as { event_id: string }).event_id).toSorted(),
  ).toEqual(["1", "6"]);

  expect(logger.of("error").map(({ fields }) => fields)).toEqual([
    { event: 2 },
    { event: 3 },
    { event: 4 },
    { event: 5 },
  ]);
  expect(valueOf(parseMetrics(await evreg.metrics()), "evreg_store_damaged_events")).toBe(4);
  expect((await evreg.doctor()).data.find(({ check }) => check === "events")).toMatchObject({
    status: "problem",
    found: expect.stringContaining("4 events are damaged where they are stored: 2, 3, 4 and 1 more"),
  });
});

/** Gives values of the STRICT table of events another type, as one flipped bit in the header of a row does. */
function retype(file: string, ...updates: readonly string[]): void {
  const database = new DatabaseSync(file, { defensive: false });
  const sql = String(database.prepare("SELECT sql FROM sqlite_schema WHERE name = 'event'").get()?.["sql"]);
  const write = (text: string): void => {
    database.exec("PRAGMA writable_schema = ON");
    database.prepare("UPDATE sqlite_schema SET sql = ? WHERE name = 'event'").run(text);
    database.exec("PRAGMA writable_schema = RESET");
  };
  database.exec("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON");
  write(sql.replace(/ STRICT$/, ""));
  database.exec(updates.join(";"));
  write(sql);
  database.close();
}

const blob = (column: string, rowid: number): string =>
  `UPDATE event SET ${column} = CAST(${column} AS BLOB) WHERE rowid = ${rowid}`;

test("a value of the wrong type fails its own event only", async () => {
  const receiver = await openReceiver();
  const data = dataFolder();
  const first = await start(data, { delivery: LOOPBACK });
  await first.evreg.actions.create(ORDER_PLACED);
  for (const id of ["a", "b", "c", "d"]) {
    await first.evreg.events.publish({ action, payload: RawJson.fromValue({ id }) });
  }
  const subscription = { application: "x", subscription: "y", action, handler: receiver.url, max_retries: 0 };
  await first.evreg.subscriptions.create(subscription);
  await first.stop();
  retype(
    join(data, "evreg.db"),
    `INSERT INTO delivery (event_id, subscription_id, created_ms, due_ms)
      SELECT rowid, 1, timestamped_ms, timestamped_ms FROM event ORDER BY rowid`,
    blob("checksum", 1),
    blob("timestamped_ms", 2),
    blob("revision", 3),
  );

  const logger = new KeptLog();
  const { evreg } = await start(data, { delivery: LOOPBACK }, { logger });
  const failed = async () => (await evreg.deliveries.list({ status: "failed" })).data;
  await until("those of damaged events", async () => (await failed()).length === 3);
  expect((await failed()).map(({ event_id: id, last_error: error }) => [id, error])).toEqual([
    [3, "event_damaged"],
    [2, "event_damaged"],
    [1, "event_damaged"],
  ]);
  const [sent] = await receiver.received(1);
  expect(JSON.parse(sent!.body.toString())).toMatchObject({ event_id: "4" });
  expect(logger.of("error").map(({ fields }) => fields)).toEqual(
    expect.arrayContaining([{ event: 1 }, { event: 2 }, { event: 3 }]),
  );

  const listed = await evreg.events.list({ order: "asc" });
  expect(listed.data.flatMap(({ rowid, payload }) => (payload.value() === null ? [rowid] : []))).toEqual([
    1, 2, 3,
  ]);
  expect(listed.meta).toMatchObject({ total: 4, damaged: [1, 2, 3] });
  for (const id of [1, 2, 3]) {
    await expect(evreg.events.get(id)).rejects.toMatchObject({ details: { event: id } });
  }
});
