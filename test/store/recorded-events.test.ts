import { expect, it } from "vitest";
import { WHOLE_KEY } from "../../src/domain/order-key.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import { listEvents } from "../../src/store/libsql/events/list.ts";
import { createAction } from "../../src/store/libsql/catalog/actions.ts";
import { createSubscription } from "../../src/store/libsql/catalog/subscriptions.ts";
import { DELIVERY_STATE } from "../../src/store/libsql/queue/delivery-state.ts";
import { recordAndClaim } from "../../src/store/libsql/queue/claim.ts";
import { eventBatch, withBytes } from "./batches.ts";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const STALE = 7;

/** An event: its action, and the revision that it names. */
type Given = readonly [actionId: number, revision: number];
const times = (count: number, actionId: number, revision = 1): readonly Given[] =>
  Array.from({ length: count }, (): Given => [actionId, revision]);

it("events are stored as they came, with their deliveries in the same order", () => {
  const connection = openFile(`${scratch.path}/evreg.db`);
  // Runs of one action with refused ones before, between and inside; then actions by turns.
  const runs = [...times(9, 1, STALE), ...times(6, 1), ...times(9, 2, STALE), ...times(6, 1)];
  const turns = times(12, 1).map((_one, index): Given => [1 + (index % 3), index % 4 === 0 ? STALE : 1]);
  const given = [...runs, ...times(9, 2), ...times(9, 3), ...turns];
  const texts = given.map((_one, index) => `[${"1".repeat(1 + (index % 5))},${index}]`);
  const keys = given.map((_one, index) => (index % 3 === 0 ? null : `key ${index}`));
  connection.write((sql) => {
    // The second action has no subscription, the third an ordered one.
    for (const action of ["a.a", "a.b", "a.c"])
      createAction(sql, { action, application: "x", schemata: {} }, 1);
    for (const [subscription, action] of [
      ["r", "a.a"],
      ["s", "a.a"],
      ["t", "a.c"],
    ] as const) {
      const target = { application: "x", subscription, action, handler: "https://h.example/" };
      const settings = { ...NO_SETTINGS, ordered: action === "a.c" };
      createSubscription(sql, { ...target, settings, maxRetries: 1, active: true, secret: "s" }, 1);
    }
    let offset = 0;
    const rows = given.flatMap(([actionId, revision], index) => {
      const { length } = texts[index]!;
      offset += length;
      return [actionId, revision, offset - length, length];
    });
    recordAndClaim(withBytes(sql, Buffer.from(texts.join(""))), [eventBatch({ nowMs: 5, rows, keys })]);
  });
  const stored = given.flatMap(([action, revision], index) =>
    revision === STALE ? [] : [{ action: `a.${"abc"[action - 1]}`, text: texts[index], key: keys[index] }],
  );
  const listed = listEvents(connection.task(), { order: "asc", limit: 100, page: 1 }).events;
  const found = listed.map(({ rowid, action, payload }) => {
    const key = connection.read.value("SELECT idempotency_key FROM event WHERE rowid = ?", rowid);
    return { action, text: Buffer.from(payload!).toString(), key };
  });
  expect(found).toEqual(stored);
  expect(listed.map(({ rowid }) => rowid)).toEqual(stored.map((_one, index) => index + 1));

  const deliveries = connection.read.rows<Record<string, number>>(
    "SELECT event_id, subscription_id, state, key, created_ms, due_ms FROM delivery ORDER BY rowid",
  );
  // In the order the first is due.
  for (const { created_ms: createdMs, due_ms: dueMs, state } of deliveries) {
    expect([createdMs, dueMs]).toEqual([5, state === DELIVERY_STATE.behind ? null : 5]);
  }
  expect(deliveries.filter((row) => row["subscription_id"] === 3 && row["due_ms"] === 5)).toHaveLength(1);
  const receivers: Record<string, (number | null)[][]> = {
    "a.a": [
      [1, null],
      [2, null],
    ],
    "a.b": [],
    "a.c": [[3, WHOLE_KEY]],
  };
  const expected = stored.flatMap(({ action }, index) =>
    receivers[action]!.map((one) => [[index + 1], one].flat()),
  );
  expect(deliveries.map((row) => [row["event_id"], row["subscription_id"], row["key"]])).toEqual(expected);
  connection.close();
});
