import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { fileSql } from "../support/file-sql.ts";
import { newAction, openStore } from "./opened-store.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const PUBLISHED = Date.parse("2026-02-01T00:00:00.000Z");
const NOW = Date.parse("2026-03-01T12:00:00.000Z");
const open = (): Promise<Store> => openStore(scratch.path);

/** Numbers from 1. */
function series(count: number): string {
  return `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${count})`;
}

beforeEach(async () => {
  const store = await open();
  for (const action of ["a", "b"]) await newAction(store, action, NOW);
  const names = { application: "x", action: "a", handler: "https://h.example/", maxRetries: 1, secret: "s" };
  for (const subscription of ["held", "failed"]) {
    const active = subscription === "failed";
    await store.catalog.createSubscription({ ...names, subscription, active }, NOW);
  }
  await store.close();
});

async function fill(events: number, ...deliveries: readonly string[]): Promise<Store> {
  fileSql(
    join(scratch.path, "evreg.db"),
    `${series(events)} INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
      SELECT n, (SELECT rowid FROM action WHERE action = 'a'), 1, ${PUBLISHED} + n, x'7b7d' FROM n`,
    ...deliveries,
  );
  return open();
}

it("of very many deliveries so many are counted, and it is told that there may be more", async () => {
  const store = await fill(
    10_500,
    `${series(10_500)} INSERT INTO delivery (rowid, event_id, subscription_id, created_ms, due_ms) SELECT n, n, 1, 1, 1 FROM n`,
    `${series(1_500)} INSERT INTO delivery (rowid, event_id, subscription_id, state, created_ms, finished_ms, last_error)
      SELECT 20000 + n, n, 2, 3, 1, ${NOW} + n, 'HTTP 500' FROM n`,
  );
  const { items, total } = await store.queue.attention({ nowMs: NOW + 9_000, limit: 9 });
  await store.close();
  expect(total).toBe(2);
  expect(items).toMatchObject([
    {
      reason: "failed",
      deliveries: 1_000,
      at_least: true,
      published_from: null,
      delivery_id: 21_500,
      error: "HTTP 500",
    },
    { reason: "paused", deliveries: 10_000, at_least: true },
  ]);
});

it("a read of very many rows does not block writes and other reads", async () => {
  const store = await fill(
    60_000,
    `${series(60_000)} INSERT INTO delivery (rowid, event_id, subscription_id, state, attempt, created_ms, finished_ms)
      SELECT n, n, 2, 2, 1, 1, 2 FROM n`,
  );
  // This subscription had only events of the other action, each of which has to be looked at.
  await store.catalog.updateSubscription(2, { action: "b" }, 1);
  const long = (): Promise<unknown> => store.queue.list({ action: "b", limit: 50 });
  const answers: unknown[] = [];
  const reading = Promise.all([long(), long()].map(async (read) => answers.push(await read)));
  let passed = 0;
  for (; answers.length < 2; passed += 1) {
    await store.tokens.create({ name: "t", scopes: [], hash: `h${passed}` }, 1);
    expect(await store.tokens.find(`h${passed}`)).toBeDefined();
  }
  await reading;
  await store.close();
  expect(answers).toEqual([[], []]);
  expect(passed).toBeGreaterThan(5);
});
