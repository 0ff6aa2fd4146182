import { join } from "node:path";
import { expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { PayloadNames } from "../../src/store/libsql/events/payload-names.ts";
import { checkFile } from "../../src/store/libsql/files/file-tasks.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
import { claimRequest } from "../support/claim-request.ts";
import { writeOlderFile } from "../support/older-file.ts";
import { testOwner } from "./owner.ts";
import { rawSql } from "./processes.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const file = (): string => join(scratch.path, "evreg.db");
const open = (): Promise<Store> =>
  openLibsqlStore({ folder: scratch.path, owner: testOwner(), logger: silentLogger });

/** Shortened and restored again, in the middle of other bytes. */
function thereAndBack(names: PayloadNames, text: string): { readonly stored: number; readonly text: string } {
  const payload = Buffer.from(text);
  const short = new Uint8Array(payload.length + 3);
  const end = names.shorten(payload, short, 3);
  const out = new Uint8Array(5 + Math.max(4_096, payload.length));
  const stop = names.restore(short.subarray(3, end), out, 5);
  return { stored: end - 3, text: Buffer.from(out.subarray(5, stop)).toString() };
}

it("Payloads are restored as they were, whatever is in them", () => {
  // More than there are codes for.
  const many = Array.from({ length: 1_400 }, (_, index) => `name${index}`);
  const all = new PayloadNames(many);
  for (const [index, name] of many.entries()) {
    const { stored, text } = thereAndBack(all, `{"${name}":1}`);
    expect(text).toBe(`{"${name}":1}`);
    expect(stored).toBe(index < 23 ? 4 : index < 1_303 ? 5 : text.length);
  }
  const some = new PayloadNames(["a", "ab", "b c", ":", "é"]);
  for (const text of [
    "{}",
    `{"a":{"ab":1,"a" :2,"abc":3},"b c":["a","\\"a\\":",":"],":":":",\t"é":"ü"}\r\n`,
    `"a":"a"`,
    `"a":`,
    `"a"`,
    `"`,
    "",
    `{"a":"${"x".repeat(4_090)}"}`,
    `{"a":"${"x".repeat(4_000)}"}`,
  ]) {
    const found = thereAndBack(some, text);
    expect(found.text).toBe(text);
    expect(found.stored).toBeLessThanOrEqual(Buffer.byteLength(text));
  }
  expect(() => thereAndBack(some, '{"a":"\u0001"}')).toThrow("not JSON");
  expect(thereAndBack(new PayloadNames([]), '{"a":1}').stored).toBe(7);
});

const schemaOf = (...names: readonly string[]) => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, true])),
  definitions: { inner: { properties: { deep: {} } } },
});
const bytes = (text: string): Uint8Array => Buffer.from(text);
const SHORT = '{"customer":1,"total":{"deep":[]},"other":"customer"}';
const LONG = `{"customer":"${"x".repeat(5_000)}"}`;

async function texts(store: Store): Promise<readonly (string | undefined)[]> {
  const { events } = await store.events.list({ order: "asc", limit: 100, page: 1 });
  return events.map(({ payload }) => payload && Buffer.from(payload).toString());
}

async function makeStore(): Promise<{ readonly store: Store; readonly actionId: number }> {
  const store = await open();
  const action = { action: "a.b", application: "x", schemata: schemaOf("customer", "total") };
  const { rowid: actionId } = await store.catalog.createAction(action, 1);
  const target = { application: "x", subscription: "s", action: "a.b", handler: "https://h.example/" };
  await store.catalog.createSubscription({ ...target, maxRetries: 1, active: true, secret: "s" }, 1);
  return { store, actionId };
}

it("Payloads are listed, claimed and compared as they were published, in each revision", async () => {
  const { store, actionId } = await makeStore();
  const record = (revision: number, text: string, idempotencyKey: string) =>
    store.events.record([{ actionId, revision, payload: bytes(text), idempotencyKey }], 1);
  await record(1, SHORT, "one");
  await record(1, LONG, "two");
  expect(await record(1, SHORT, "one")).toMatchObject([{ kind: "replayed", rowid: 1 }]);
  expect(await record(1, SHORT.replace("1", "2"), "one")).toMatchObject([{ kind: "key_conflict" }]);

  const found = await store.catalog.findAction("a.b");
  const change = { action: "a.b", schemata: schemaOf("total", "other", "customer") };
  await store.catalog.reviseAction({ ...change, expectedVersion: found!.version }, 2);
  await record(2, SHORT, "three");
  expect(await record(2, SHORT, "one")).toMatchObject([{ kind: "replayed", rowid: 1, revision: 1 }]);
  expect(await record(2, LONG, "two")).toMatchObject([{ kind: "replayed", rowid: 2 }]);

  expect(await texts(store)).toEqual([SHORT, LONG, SHORT]);
  const { claims } = await store.queue.claim(claimRequest({ nowMs: 5 }));
  expect(claims.map(({ event }) => Buffer.from(event.payload!).toString())).toEqual([SHORT, LONG, SHORT]);
  await store.close();
  expect(await checkFile(file())).toMatchObject({ damaged_events: [], impossible: [] });
  // The names of the first: customer, total, deep.
  const stored = rawSql(file(), "SELECT octet_length(payload) AS bytes FROM event");
  const names = ['"customer":', '"total":', '"deep":'].join("").length;
  const inSecond = names + '"other":'.length;
  expect(stored.map((row) => row["bytes"])).toEqual([
    SHORT.length - names + 3,
    LONG.length,
    SHORT.length - inSecond + 4,
  ]);
});

it("Payloads are read where their names are damaged, and reported where those cannot be made again either", async () => {
  const { store, actionId } = await makeStore();
  await store.events.record(
    [SHORT, LONG, "[]"].map((text) => ({ actionId, revision: 1, payload: bytes(text) })),
    1,
  );
  await store.close();
  rawSql(
    file(),
    `UPDATE payload_names SET names = '["custoner","total","deep"]' WHERE action_id = ${actionId}`,
  );
  let changed = await open();
  expect(await texts(changed)).toEqual([SHORT, LONG, "[]"]);
  await changed.close();
  rawSql(file(), "PRAGMA foreign_keys = OFF", `DELETE FROM payload_names WHERE action_id = ${actionId}`);
  changed = await open();
  expect(await texts(changed)).toEqual([SHORT, LONG, "[]"]);
  await changed.close();
  rawSql(file(), `UPDATE action_revision SET schemata = '{}' WHERE action_id = ${actionId}`);
  changed = await open();
  expect(await texts(changed)).toEqual([undefined, LONG, "[]"]);
  expect(changed.admin.damagedEvents()).toEqual([1]);
  await changed.close();
});

it("A file of before keeps its payloads, and has names for its schemas", async () => {
  const schemata = JSON.stringify(schemaOf("customer", "total", 'a"b', "c\\d", "é"));
  writeOlderFile(
    file(),
    13,
    "INSERT INTO action (action, application, revision, created_ms) VALUES ('a.b', 'x', 1, 1)",
    `INSERT INTO action_revision (action_id, revision, schemata, created_ms) VALUES (1, 1, '${schemata}', 1)`,
    `INSERT INTO event (action_id, revision, timestamped_ms, payload) VALUES (1, 1, 1, CAST('${SHORT}' AS BLOB))`,
  );
  const store = await open();
  await store.events.record([{ actionId: 1, revision: 1, payload: bytes(SHORT) }], 1);
  expect(await texts(store)).toEqual([SHORT, SHORT]);
  await store.close();
  expect(await checkFile(file())).toMatchObject({ damaged_events: [], impossible: [] });
  expect(rawSql(file(), "SELECT names FROM payload_names WHERE action_id = 1")).toEqual([
    { names: '["customer","total","deep"]' },
  ]);
});

it("A list under `properties` takes no name from the schema", async () => {
  const sizes: number[] = [];
  for (const [action, more] of [
    ["a.b", {}],
    ["c.d", { meta: { default: { properties: ["x"] } } }],
  ] as const) {
    const store = await open();
    const schemata = { ...schemaOf("customer_identifier"), ...more };
    const { rowid: actionId } = await store.catalog.createAction({ action, application: "x", schemata }, 1);
    const payload = Buffer.from('{"customer_identifier":1}');
    await store.events.record([{ actionId, revision: 1, payload }], 1);
    const { events } = await store.events.list({ order: "desc", limit: 1, page: 1 });
    expect(Buffer.from(events[0]!.payload!).toString()).toBe('{"customer_identifier":1}');
    await store.close();
    const [found] = rawSql(file(), "SELECT length(payload) AS bytes FROM event ORDER BY rowid DESC LIMIT 1");
    sizes.push(Number(found?.["bytes"]));
  }
  expect(sizes).toEqual([4, 4]);
});
