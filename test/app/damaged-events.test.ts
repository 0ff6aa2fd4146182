import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import type { Logger } from "../../src/runtime/logger.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { parseMetrics, valueOf } from "../support/prometheus.ts";
import { startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { rawSql } from "../store/processes.ts";
import { dataFolder, ORDER_PLACED, start } from "./setup.ts";

const DELIVERY = { allowHttp: true, allowNetworks: ["127.0.0.0/8"] };
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
  const receiver = await startReceiver();
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
  rawSql(
    file,
    "UPDATE event SET payload = (SELECT payload FROM event WHERE rowid = 1) WHERE rowid = 3",
    "UPDATE event SET action_id = 1 WHERE rowid = 4",
    "UPDATE event SET payload = zeroblob(16777217) WHERE rowid = 5",
    "UPDATE event SET checksum = NULL WHERE rowid = 1",
  );

  const errors: object[] = [];
  const logger: Logger = { ...silentLogger, error: (fields) => errors.push(fields) };
  const { evreg } = await start(data, { delivery: DELIVERY }, { logger });
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

  // Whoever sends it again has not sent another one; a payload that is another is one all the same.
  const again = (id: string) =>
    evreg.events.publish({ action, payload: RawJson.fromValue({ id }), idempotency_key: "key 2" });
  expect(await again("two-2")).toMatchObject({ replayed: true, data: { rowid: 2 } });
  await expect(again("two-3")).rejects.toMatchObject({ code: "conflict" });

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

  expect(errors).toEqual([{ event: 2 }, { event: 3 }, { event: 4 }, { event: 5 }]);
  expect(valueOf(parseMetrics(await evreg.metrics()), "evreg_store_damaged_events")).toBe(4);
  expect((await evreg.doctor()).data.find(({ check }) => check === "events")).toMatchObject({
    status: "problem",
    found: expect.stringContaining("4 events are damaged in the data file: 2, 3, 4 and 1 more"),
  });
  await receiver.close();
});

/** Gives values of STRICT tables another type, as one flipped bit in the header of a row does. */
function retype(file: string, ...updates: readonly string[]): void {
  const database = new DatabaseSync(file, { defensive: false });
  const tables = ["event", "delivery", "subscription"].map((table) => {
    const row = database.prepare("SELECT sql FROM sqlite_schema WHERE name = ?").get(table);
    return { table, sql: String(row?.["sql"]) };
  });
  const write = (change: (sql: string) => string): void => {
    database.exec("PRAGMA writable_schema = ON");
    for (const { table, sql } of tables) {
      database.prepare("UPDATE sqlite_schema SET sql = ? WHERE name = ?").run(change(sql), table);
    }
    database.exec("PRAGMA writable_schema = RESET");
  };
  database.exec("PRAGMA foreign_keys = OFF");
  write((sql) => sql.replace(/ STRICT$/, ""));
  database.exec(updates.join(";"));
  write((sql) => sql);
  database.close();
}

const blob = (table: string, column: string, rowid: number): string =>
  `UPDATE ${table} SET ${column} = CAST(${column} AS BLOB) WHERE rowid = ${rowid}`;

test("a value of the wrong type fails its own record only", async () => {
  const receiver = await startReceiver();
  const data = dataFolder();
  const first = await start(data, { delivery: DELIVERY });
  await first.evreg.actions.create(ORDER_PLACED);
  for (const id of ["a", "b", "c", "d", "e", "f"]) {
    await first.evreg.events.publish({ action, payload: RawJson.fromValue({ id }) });
  }
  const [unreadable, mended, well, ill] = [1, 2, 3, 4] as const;
  for (const id of [unreadable, mended, well, ill]) {
    const handler = `${receiver.url}/${id}`;
    const subscription = { application: "x", subscription: `s${id}`, action, handler, max_retries: 0 };
    await first.evreg.subscriptions.create(subscription);
  }
  await first.stop();
  retype(
    join(data, "evreg.db"),
    // In the order of the subscriptions, those of the third are 13 to 18.
    `INSERT INTO delivery (event_id, subscription_id, created_ms, due_ms)
      SELECT e.rowid, s.rowid, e.timestamped_ms, e.timestamped_ms
      FROM subscription AS s CROSS JOIN event AS e ORDER BY s.rowid, e.rowid`,
    blob("event", "checksum", 1),
    blob("event", "timestamped_ms", 2),
    blob("event", "revision", 3),
    blob("delivery", "due_ms", 17),
    blob("delivery", "failures", 22),
    blob("delivery", "created_ms", 24),
    `UPDATE subscription SET settings = x'ff' WHERE rowid = ${unreadable}`,
    blob("subscription", "handler", mended),
  );

  const errors: object[] = [];
  const logger: Logger = { ...silentLogger, error: (fields) => errors.push(fields) };
  const { evreg } = await start(data, { delivery: DELIVERY }, { logger });
  await evreg.events.publish({ action, payload: RawJson.fromValue({ id: "after" }) });
  const sent = async (count: number) =>
    (await receiver.received(count))
      .map(({ path, body }) => `${path} ${(JSON.parse(body.toString()) as { event_id: string }).event_id}`)
      .toSorted();
  expect(await sent(3)).toEqual(["/hook/3 4", "/hook/3 6", "/hook/3 7"]);
  const failed = async () => (await evreg.deliveries.list({ status: "failed", subscription: well })).data;
  await until("those of damaged events", async () => (await failed()).length === 3);
  expect((await failed()).map(({ event_id: id, last_error: error }) => [id, error])).toEqual([
    [3, "event_damaged"],
    [2, "event_damaged"],
    [1, "event_damaged"],
  ]);
  await until("all that is damaged to be told", () => errors.length === 6);
  expect(errors).toEqual(
    expect.arrayContaining([
      ...[unreadable, mended, ill].map((subscription) => ({ subscription })),
      ...[1, 2, 3].map((event) => ({ event })),
    ]),
  );
  // What is written in the place of the damaged value makes it good.
  await evreg.subscriptions.update(mended, { handler: `${receiver.url}/new` });
  expect((await sent(7)).slice(3)).toEqual(["/hook/new 4", "/hook/new 5", "/hook/new 6", "/hook/new 7"]);

  const listed = await evreg.events.list({ order: "asc" });
  expect(listed.data.flatMap(({ rowid, payload }) => (payload.value() === null ? [rowid] : []))).toEqual([
    1, 2, 3,
  ]);
  expect(listed.meta).toMatchObject({ total: 7, damaged: [1, 2, 3] });
  for (const id of [1, 2, 3]) {
    await expect(evreg.events.get(id)).rejects.toMatchObject({ details: { event: id } });
    expect((await evreg.deliveries.list({ event: id })).data).toHaveLength(4);
  }
  for (const id of [17, 22, 24]) expect((await evreg.deliveries.get(id)).data.rowid).toBe(id);
  await receiver.close();
});
