import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import type { DeliverySelection } from "../../src/store/queue.ts";
import { createAction } from "../../src/store/sql/catalog/actions.ts";
import { createSubscription } from "../../src/store/sql/catalog/subscriptions.ts";
import { countBacklog } from "../../src/store/sql/queue/backlog.ts";
import { listDeliveries } from "../../src/store/sql/queue/delivery-list.ts";
import type { Store } from "../../src/store/store.ts";
import { fileSql } from "../support/file-sql.ts";
import { openFile } from "./open-file.ts";
import { newAction, openStore, subscriptionTo, useScratch } from "./opened-store.ts";

const scratch = useScratch();
const PUBLISHED = Date.parse("2026-02-01T00:00:00.000Z");
const NOW = Date.parse("2026-03-01T12:00:00.000Z");
/** More than are gathered and sorted. */
const HELD = 21_000;
const open = (): Promise<Store> => openStore(scratch.path);

/** Numbers from 1. */
function series(count: number): string {
  return `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${count})`;
}

beforeEach(async () => {
  const store = await open();
  for (const action of ["a", "b"]) await newAction(store, action, NOW);
  for (const subscription of ["held", "failed"]) {
    const active = subscription === "failed";
    await store.catalog.createSubscription(subscriptionTo("a", { subscription, active }), NOW);
  }
  await store.close();
});

/** @param actionOf SQL of the action of the event `n` */
async function fill(events: number, actionOf: string, ...deliveries: readonly string[]): Promise<Store> {
  fileSql(
    join(scratch.path, "evreg.db"),
    `${series(events)} INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
      SELECT n, (SELECT rowid FROM action WHERE action = ${actionOf}), 1, ${PUBLISHED} + n, x'7b7d' FROM n`,
    ...deliveries,
  );
  return open();
}

async function listed(store: Store, query: DeliverySelection): Promise<readonly number[]> {
  return (await store.queue.list(query)).map(({ rowid }) => rowid);
}

it("of very many deliveries so many are counted, and it is told that there may be more; all can be listed", async () => {
  const store = await fill(
    HELD,
    "'a'",
    `${series(HELD)} INSERT INTO delivery (rowid, event_id, subscription_id, created_ms, due_ms, failures)
      SELECT n, n, 1, n, 1, n % 1000 = 7 FROM n`,
    `${series(1_500)} INSERT INTO delivery (rowid, event_id, subscription_id, state, created_ms, finished_ms, last_error)
      SELECT 30000 + n, n, 2, 3, 1, ${NOW} + n, 'HTTP 500' FROM n`,
    // The clock was set back before the last of them.
    `UPDATE event SET timestamped_ms = ${PUBLISHED} - 5 WHERE rowid > 1400`,
    "INSERT INTO clock_step (first_event, first_delivery, noticed_ms) VALUES (1401, 1000000, 1)",
  );
  const { items, total } = await store.queue.attention({ nowMs: NOW + 9_000, limit: 9 });
  expect(total).toBe(2);
  expect(items).toMatchObject([
    {
      reason: "failed",
      deliveries: 1_000,
      at_least: true,
      published_from: "2026-01-31T23:59:59.995Z",
      delivery_id: 31_500,
      error: "HTTP 500",
    },
    { reason: "paused", deliveries: 10_000, at_least: true },
  ]);
  for (const which of [{ status: "held" }, { cause: { name: "held", nowMs: NOW } }] as const) {
    expect(await listed(store, { ...which, limit: 3 })).toEqual([HELD, HELD - 1, HELD - 2]);
    expect(await listed(store, { ...which, subscription: 1, action: "a", limit: 9, after: 3 })).toEqual([
      2, 1,
    ]);
    expect(await listed(store, { ...which, applications: ["x"], toMs: 5, limit: 2 })).toEqual([4, 3]);
    expect(await listed(store, { ...which, event: 9, limit: 2 })).toEqual([9]);
    expect(await listed(store, { ...which, action: "b", limit: 2 })).toEqual([]);
  }
  await store.close();
});

it("what waits is found behind very many that are due, in one part", async () => {
  const store = await fill(
    HELD,
    "'a'",
    `${series(HELD)} INSERT INTO delivery (rowid, event_id, subscription_id, created_ms, due_ms, failures)
      SELECT n, n, 2, n, iif(n = 3, ${NOW} + 1, 1), 1 FROM n`,
  );
  await store.close();
  const connection = await openFile(join(scratch.path, "evreg.db"));
  const query = { cause: { name: "waiting", nowMs: NOW }, limit: 5 } as const;
  const { items, rest } = await listDeliveries(connection.read, query);
  expect([items.map(({ rowid }) => rowid), rest]).toEqual([[3], undefined]);
  // With its subscription all of them wait.
  connection.read.run("UPDATE subscription SET slowed_until_ms = ? WHERE rowid = 2", NOW + 1);
  expect((await listDeliveries(connection.read, query)).items).toHaveLength(5);
  connection.close();
});

it("what is unfinished is found behind very many that are delivered, in two parts", async () => {
  const delivered = 17_000;
  const store = await fill(
    HELD + delivered,
    "'a'",
    `${series(HELD + delivered)} INSERT INTO delivery
        (rowid, event_id, subscription_id, state, attempt, created_ms, due_ms, failures, finished_ms)
      SELECT n, n, 2, iif(n > ${HELD}, 2, 0), 1, n, iif(n > ${HELD}, NULL, ${NOW} + 1), n <= ${HELD}, iif(n > ${HELD}, 1, NULL) FROM n`,
  );
  await store.close();
  const connection = await openFile(join(scratch.path, "evreg.db"));
  const cause = { name: "waiting", nowMs: NOW } as const;
  for (const query of [{ cause }, { status: "waiting" }, { status: "waiting", subscription: 2 }] as const) {
    const first = await listDeliveries(connection.read, { ...query, limit: 2 });
    expect(first.items).toEqual([]);
    const { items } = await listDeliveries(connection.read, first.rest!);
    expect(items.map(({ rowid }) => rowid)).toEqual([HELD, HELD - 1]);
  }
  connection.close();
});

it("a read of very many rows finds what is rare, and does not block writes and other reads", async () => {
  // Each of these deliveries has to be looked at for the few of the other action.
  const rare = [119_999, 17_000, 5];
  const store = await fill(
    120_000,
    `iif(n IN (${rare.join()}), 'b', 'a')`,
    `${series(120_000)} INSERT INTO delivery (rowid, event_id, subscription_id, state, attempt, created_ms, finished_ms)
      SELECT n, n, 2, 2, 1, n, 2 FROM n`,
  );
  await store.catalog.updateSubscription(2, { action: "b" }, 1);
  const long = { action: "b", limit: 50 };
  const answers: unknown[] = [];
  const reads = [long, { ...long, status: "delivered" } as const].map((query) => listed(store, query));
  const reading = Promise.all(reads.map(async (read) => answers.push(await read)));
  let passed = 0;
  for (; answers.length < 2; passed += 1) {
    await store.tokens.create({ name: "t", scopes: [], hash: `h${passed}` }, 1);
    expect(await store.tokens.find(`h${passed}`)).toBeDefined();
  }
  await reading;
  expect(answers).toEqual([rare, rare]);
  expect(passed).toBeGreaterThan(5);
  expect(await listed(store, { ...long, limit: 2, after: 17_001 })).toEqual([17_000, 5]);
  expect(await listed(store, { ...long, toMs: 17_000 })).toEqual([5]);
  await store.close();
});

it("a long backlog is counted up to a limit, a part of each subscription's, and then reported as more", async () => {
  const now = 1_000;
  const connection = await openFile(join(scratch.path, "one.db"));
  await connection.write(async (sql) => {
    await createAction(sql, { action: "a", application: "x", schemata: {} }, 1);
    for (let id = 1; id <= 50; id += 1) {
      const own = { subscription: `s${id}`, active: id % 5 > 0 };
      await createSubscription(sql, subscriptionTo("a", own), 1);
    }
    sql.run(
      `${series(10_000)} INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload) SELECT n, 1, 1, 1, x'7b7d' FROM n`,
    );
    // A half of the active ones' is due, and the first has most.
    sql.run(
      `${series(10_000)} INSERT INTO delivery (rowid, event_id, subscription_id, created_ms, due_ms)
        SELECT n, n, iif(n <= 5000, 1 + n % 50, 1), 1, ${now} + n % 2 FROM n`,
    );
  });
  const counted = async (max?: number) => {
    const {
      due,
      waiting,
      held,
      is_whole: isWhole,
    } = await countBacklog(connection.read, now, undefined, max);
    return { due: due.deliveries, waiting: waiting.deliveries, held: held.deliveries, isWhole };
  };
  expect(await counted()).toEqual({ due: 4_500, waiting: 4_500, held: 1_000, isWhole: true });
  const { isWhole, ...parts } = await counted(2_000);
  expect(isWhole).toBe(false);
  // The first takes all of it, and fifty of each are counted all the same.
  expect(parts.due + parts.waiting).toBe(2_000 + 39 * 50);
  expect(parts.held).toBe(10 * 50);
});
