import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fileTask } from "../../src/store/libsql/file-task.ts";
import { FORM } from "../../src/store/libsql/files/schema.ts";
import type { Claim } from "../../src/store/queue.ts";
import type { Store } from "../../src/store/store.ts";
import { claimRequest } from "../support/claim-request.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { ONE_ACTION, ONE_REVISION, writeOlderFile } from "../support/older-file.ts";
import { eventOf, openStore, payloadsIn, subscriptionTo, useScratch } from "./opened-store.ts";

const scratch = useScratch();
const NOW = Date.parse("2026-03-01T12:00:00.000Z");
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const file = (): string => join(scratch.path, "evreg.db");
const open = (): Promise<Store> => openStore(scratch.path, { clock: new ManualClock(NOW) });
const iso = (ms: number): string => new Date(ms).toISOString();

/** How form 10 stores that a person requested a delivery. */
const requestedAt = (ms: number): number => ms - 2 ** 50;

interface OldDelivery {
  readonly event: number;
  readonly subscription: number;
  readonly createdMs?: number;
  readonly dueMs?: number;
  readonly failures?: number;
  readonly state?: number;
}

const PLAIN = 1;
const BLOCKED = 2;
const FORMER = 3;
const SET_BACK = 4;
const DELIVERIES: readonly OldDelivery[] = [
  { event: 1, subscription: PLAIN, dueMs: NOW + HOUR_MS, failures: 1 },
  { event: 2, subscription: PLAIN, dueMs: requestedAt(NOW - 5) },
  { event: 3, subscription: PLAIN, dueMs: NOW },
  { event: 4, subscription: PLAIN, state: 2 },
  { event: 5, subscription: PLAIN, state: 3, failures: 6 },
  { event: 1, subscription: BLOCKED, dueMs: requestedAt(NOW - 3) },
  { event: 2, subscription: BLOCKED, dueMs: 2, failures: 1 },
  { event: 3, subscription: BLOCKED, dueMs: 3 },
  { event: 1, subscription: FORMER, dueMs: 1 },
  { event: 2, subscription: FORMER, dueMs: 2 },
  { event: 4, subscription: SET_BACK, dueMs: 4, createdMs: NOW + DAY_MS },
  { event: 5, subscription: SET_BACK, dueMs: 5, createdMs: NOW - HOUR_MS },
];

/** The statements that fill a file of form 10. */
function oldRows(): readonly string[] {
  const subscriptions = [PLAIN, BLOCKED, FORMER, SET_BACK].flatMap((id) => {
    const isOrdered = id === BLOCKED || id === SET_BACK;
    const slowed = id === BLOCKED ? NOW + HOUR_MS : id === FORMER ? NOW + 2 * HOUR_MS : "NULL";
    const settings = isOrdered ? `'{"ordered":true,"on_exhausted":"block"}'` : "NULL";
    return [
      `INSERT INTO subscription (rowid, application, subscription, action_id, handler, active, created_ms, max_retries,
          failing_since_ms, failed_ms, failing_ms, slowed_until_ms, ordered, settings)
        VALUES (${id}, 'x', 's${id}', 1, 'https://h.example/', 1, 1, ${id === BLOCKED ? 0 : 5}, ${NOW - 9}, ${NOW - 8}, 7,
          ${slowed}, ${Number(isOrdered)}, ${settings})`,
      `INSERT INTO subscription_secret (subscription_id, secret, bearer) VALUES (${id}, 's', 'secret')`,
    ];
  });
  const deliveries = DELIVERIES.map((old) => {
    const { event, subscription, createdMs = NOW - 10, dueMs = null, failures = 0, state = 0 } = old;
    const ended = state === 0 ? "NULL, NULL" : `${NOW}, ${state === 3 ? "'HTTP 500'" : "NULL"}`;
    return `(${event}, ${subscription}, ${state}, ${failures}, ${failures}, ${createdMs}, ${dueMs}, ${ended})`;
  });
  return [
    ONE_ACTION,
    ONE_REVISION,
    ...subscriptions,
    `INSERT INTO event (action_id, revision, timestamped_ms, payload) VALUES
      ${[1, 2, 3].map(() => `(1, 1, ${NOW - 10}, x'7b7d')`).join()},
      (1, 1, ${NOW + DAY_MS}, x'7b7d'), (1, 1, ${NOW - HOUR_MS}, x'7b7d')`,
    `INSERT INTO clock_step VALUES (5, ${DELIVERIES.length}, ${NOW - HOUR_MS})`,
    `INSERT INTO delivery (event_id, subscription_id, state, attempt, failures, created_ms, due_ms, finished_ms, last_error)
      VALUES ${deliveries.join()}`,
    `INSERT INTO attempt (delivery_id, attempt, started_ms, duration_ms, outcome, status_code)
      VALUES (4, 1, ${NOW + 2}, 3, 'delivered', 200)`,
    // What was under way is due again at its place.
    `INSERT INTO lease VALUES (${DELIVERIES.length}, 7, ${NOW - 2}, ${NOW + 9})`,
    `INSERT INTO probe VALUES (1, ${NOW - DAY_MS}, x'00')`,
  ];
}

/** Claims and delivers all that is sent at that time: the events of each subscription, in their order. */
async function drain(store: Store, nowMs: number): Promise<Record<number, number[]>> {
  const sent: Record<number, number[]> = {};
  for (;;) {
    const claimed: readonly Claim[] = (await store.queue.claim(claimRequest({ nowMs, limit: 1 }))).claims;
    const [claim] = claimed;
    if (claim === undefined) return sent;
    (sent[claim.subscription.subscriptionId] ??= []).push(claim.event.eventId);
    const { deliveryId, claimId } = claim;
    const result = { deliveryId, claimId, startedAtMs: nowMs, durationMs: 1, statusCode: 200 };
    await store.queue.finish([{ ...result, ending: "delivered" }], nowMs);
  }
}

describe("a file of form 10", () => {
  it("keeps what was requested, ordered, blocked, formerly ordered and published before the clock was set back", async () => {
    writeOlderFile(file(), 10, ...oldRows());
    const store = await open();
    const planned = async (id: number) =>
      (await store.queue.list({ subscription: id, limit: 9 })).map((one) => [
        one.event_id,
        one.status,
        one.next_attempt_at,
      ]);
    expect(await planned(PLAIN)).toEqual([
      [5, "failed", null],
      [4, "delivered", null],
      [3, "pending", iso(NOW)],
      [2, "pending", iso(NOW - 5)],
      [1, "waiting", iso(NOW + HOUR_MS)],
    ]);
    expect((await store.queue.find(4))?.attempts).toMatchObject([
      { attempt: 1, duration_ms: 3, status_code: 200 },
    ]);
    expect(await planned(BLOCKED)).toEqual([
      [3, "pending", null],
      [2, "waiting", null],
      [1, "pending", iso(NOW + HOUR_MS)],
    ]);
    const [blocked, former, setBack] = await Promise.all(
      [BLOCKED, FORMER, SET_BACK].map((id) => store.catalog.findSubscription(id)),
    );
    expect(blocked).toMatchObject({ action: "a", blocked_by: null, slowed_until: null });
    expect(former).toMatchObject({ blocked_by: null, slowed_until: iso(NOW + 2 * HOUR_MS), ordered: false });
    expect(setBack).toMatchObject({ blocked_by: null, slowed_until: null, ordered: true });
    expect(await drain(store, NOW)).toEqual({ [PLAIN]: [2, 3], [SET_BACK]: [4, 5] });
    expect(await drain(store, NOW + HOUR_MS)).toEqual({ [PLAIN]: [1], [BLOCKED]: [1, 2, 3] });
    expect(await drain(store, NOW + 2 * HOUR_MS)).toEqual({ [FORMER]: [1, 2] });
    await store.close();
    expect(await fileTask("examineFile", file())).toMatchObject({ form: FORM });
  });

  it("keeps its idempotency keys, each in the application of its action", async () => {
    writeOlderFile(
      file(),
      10,
      "INSERT INTO action (action, application, revision, created_ms) VALUES ('a', 'x', 1, 1), ('b', 'y', 1, 1)",
      "INSERT INTO action_revision (action_id, revision, schemata, created_ms) VALUES (1, 1, '{}', 1), (2, 1, '{}', 1)",
      `INSERT INTO event (action_id, revision, timestamped_ms, payload, idempotency_key)
        VALUES (1, 1, 1, x'7b7d', 'k'), (1, 1, 1, x'7b7d', NULL), (2, 1, 1, x'7b7d', 'l')`,
    );
    const store = await open();
    const publish = async (actionId: number, idempotencyKey: string): Promise<string | undefined> => {
      return (await store.events.record([{ ...eventOf(actionId), idempotencyKey }], 2))[0]?.kind;
    };
    expect(await publish(1, "k")).toBe("replayed");
    expect(await publish(2, "k")).toBe("recorded");
    expect(await publish(1, "l")).toBe("recorded");
    expect(await publish(2, "l")).toBe("replayed");
    await store.close();
  });

  it("has events without checksums, and gives one to each new event", async () => {
    const event =
      "INSERT INTO event (action_id, revision, timestamped_ms, payload) VALUES (1, 1, 1, x'7b7d')";
    writeOlderFile(file(), 10, ONE_ACTION, ONE_REVISION, event);
    expect(await fileTask("examineFile", file())).toMatchObject({ form: 10, damaged_events: [] });
    const store = await open();
    await store.events.record([eventOf(1, '{"n":1}')], 2);
    expect(await payloadsIn(store)).toEqual(["{}", '{"n":1}']);
    await store.close();
    expect(await fileTask("examineFile", file())).toMatchObject({ form: FORM, damaged_events: [] });
  });

  it.each([
    ["those at its beginning", [4, 5], { event: 3, ms: 1_004 }],
    ["those before it was restored", [7, 700_000_000], { event: 6, ms: 1_007 }],
  ])("knows which of its events were removed: %s", async (_, rowids, removed) => {
    const events = `INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
      SELECT value, 1, 1, 1000 + value, x'7b7d' FROM json_each('${JSON.stringify(rowids)}')`;
    writeOlderFile(file(), 10, ONE_ACTION, events);
    const store = await open();
    expect((await store.events.list({ order: "asc", limit: 1, page: 1 })).removed).toEqual(removed);
    await store.close();
  });

  it("keeps a user's action that has the name of an event of evreg's own, which then is not recorded", async () => {
    const name = "evreg.delivery.failed";
    const second = ONE_ACTION.replace("'a'", "'b'");
    const revisions = [ONE_REVISION, ONE_REVISION.replace("(1, 1", "(2, 1")];
    writeOlderFile(file(), 10, ONE_ACTION.replace("'a'", `'${name}'`), second, ...revisions);
    const store = await openStore(scratch.path);
    expect(await store.catalog.findAction(name)).toMatchObject({
      application: "x",
      isBuiltIn: false,
      revision: 1,
    });
    for (const action of [name, "evreg.subscription.deactivated", "b"]) {
      await store.catalog.createSubscription(subscriptionTo(action), 1);
    }
    await store.events.record([eventOf(2)], 1);
    const [claim] = (await store.queue.claim(claimRequest({ nowMs: 2 }))).claims;
    const { deliveryId, claimId } = claim!;
    await store.queue.finish([{ deliveryId, claimId, startedAtMs: 2, durationMs: 1, ending: "gone" }], 3);
    const { events } = await store.events.list({ order: "asc", limit: 9, page: 1 });
    expect(events.map(({ action }) => action)).toEqual(["b", "evreg.subscription.deactivated"]);
    await store.close();
  });

  it("retires an action of evreg's own of which nothing is published any more", async () => {
    const action = ONE_ACTION.replace("'a'", "'evreg.replay.finished'");
    writeOlderFile(file(), 10, action, ONE_REVISION, "UPDATE action SET built_in = 1");
    const store = await open();
    expect(await store.catalog.findAction("evreg.replay.finished")).toMatchObject({ retired: true });
    await store.close();
  });

  it("lists a subscription that was paused with what it has missed", async () => {
    writeOlderFile(
      file(),
      10,
      "INSERT INTO action (action, application, revision, created_ms) VALUES ('a.b', 'x', 1, 1), ('c.d', 'x', 1, 1)",
      "INSERT INTO action_revision (action_id, revision, schemata, created_ms) VALUES (1, 1, '{}', 1), (2, 1, '{}', 1)",
      `INSERT INTO subscription (application, subscription, action_id, handler, max_retries, active, created_ms)
        VALUES ('x', 's', 1, 'https://h.example/', 1, 0, 1)`,
      "INSERT INTO subscription_secret (subscription_id, secret, bearer) VALUES (1, 's', 'secret')",
      `INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
        SELECT value, 1 + (value = 6), 1, 10 * value, x'7b7d' FROM json_each('[1,2,3,4,5,6]')`,
      "INSERT INTO delivery (event_id, subscription_id, state, attempt, created_ms, finished_ms) VALUES (1, 1, 2, 1, 10, 10), (2, 1, 2, 1, 20, 20)",
    );
    const store = await open();
    const { items } = await store.queue.attention({ nowMs: 100, limit: 10 });
    expect(items).toMatchObject([{ reason: "paused", subscription_id: 1, since: null, missed: 3 }]);
    await store.close();
  });
});
