import { expect, it } from "vitest";
import { WHOLE_KEY } from "../../src/domain/order-key.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import { listEvents } from "../../src/store/libsql/events/list.ts";
import { createAction } from "../../src/store/libsql/catalog/actions.ts";
import { createSubscription } from "../../src/store/libsql/catalog/subscriptions.ts";
import { DELIVERY_STATE } from "../../src/store/libsql/queue/delivery-state.ts";
import { recordAndClaim } from "../../src/store/libsql/queue/record-claim.ts";
import { eventBatch, withBytes } from "./batches.ts";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const STALE = 7;

/** By event: its action, and the revision that it names. */
type Given = readonly [actionId: number, revision: number];
const LONG = 12;
const all = (actionId: number, revision = 1): readonly Given[] =>
  Array.from({ length: LONG }, (): Given => [actionId, revision]);

it.each([
  ["runs of the same action, with refused ones before, between and inside", true],
  ["events of two actions by turns", false],
])("%s are stored as they came, with their deliveries in the same order", (_, isInRuns) => {
  const connection = openFile(`${scratch.path}/evreg.db`);
  const given = isInRuns
    ? [...all(1, STALE), ...all(1).slice(6), ...all(2, STALE), ...all(1).slice(6), ...all(2), ...all(3)]
    : all(1).flatMap((one, index): Given[] => [one, [1 + (index % 3), index % 4 === 0 ? STALE : 1]]);
  const texts = given.map((_one, index) => `[${"1".repeat(1 + (index % 5))},${index}]`);
  const keys = given.map((_one, index) => (index % 3 === 0 ? null : `key ${index}`));
  const actions = connection.write((sql) => {
    const made = ["a.a", "a.b", "a.c"].map((action) => {
      createAction(sql, { action, application: "x", schemata: {} }, 1);
      return sql.value<number>("SELECT rowid FROM action WHERE action = ?", action);
    });
    // The second has none, the third an ordered one.
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
    const rows = given.flatMap(([action, revision], index) => {
      const row = [made[action - 1]!, revision, offset, texts[index]!.length];
      offset += texts[index]!.length;
      return row;
    });
    recordAndClaim(withBytes(sql, Buffer.from(texts.join(""))), [eventBatch({ nowMs: 5, rows, keys })]);
    return made;
  });
  const stored = given.flatMap(([action, revision], index) =>
    revision === STALE ? [] : [{ action: `a.${"abc"[action - 1]}`, text: texts[index], key: keys[index] }],
  );
  const page = { order: "asc" as const, limit: 100, page: 1 };
  const listed = listEvents(connection.task(), page).events;
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
  const expected = stored.flatMap(({ action }, index) => {
    const eventId = index + 1;
    if (action === "a.b") return [];
    return action === "a.c"
      ? [[eventId, 3, WHOLE_KEY]]
      : [
          [eventId, 1, null],
          [eventId, 2, null],
        ];
  });
  expect(deliveries.map((row) => [row["event_id"], row["subscription_id"], row["key"]])).toEqual(expected);
  expect(new Set(actions).size).toBe(3);
  connection.close();
});
