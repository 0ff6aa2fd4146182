import { join } from "node:path";
import { expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
import { testOwner } from "./owner.ts";
import { rawSql } from "./processes.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const PUBLISHED = Date.parse("2026-02-01T00:00:00.000Z");
const NOW = Date.parse("2026-03-01T12:00:00.000Z");
const open = (): Promise<Store> =>
  openLibsqlStore({ folder: scratch.path, owner: testOwner(), logger: silentLogger });

/** Numbers from 1. */
function series(count: number): string {
  return `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${count})`;
}

it("Of very many deliveries so many are counted, and it is told that there may be more", async () => {
  const made = await open();
  await made.catalog.createAction({ action: "a.b", application: "x", schemata: {} }, NOW);
  const names = { application: "x", action: "a.b", handler: "https://h.example/", maxRetries: 1 };
  for (const subscription of ["held", "failed"]) {
    const active = subscription === "failed";
    await made.catalog.createSubscription({ ...names, subscription, active, secret: "s" }, NOW);
  }
  await made.close();
  rawSql(
    join(scratch.path, "evreg.db"),
    `${series(10_500)} INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
      SELECT n, 1, 1, ${PUBLISHED} + n, x'7b7d' FROM n`,
    `${series(10_500)} INSERT INTO delivery (rowid, event_id, subscription_id, created_ms, due_ms) SELECT n, n, 1, 1, 1 FROM n`,
    `${series(1_500)} INSERT INTO delivery (rowid, event_id, subscription_id, state, created_ms, finished_ms, last_error)
      SELECT 20000 + n, n, 2, 3, 1, ${NOW} + n, 'HTTP 500' FROM n`,
  );
  const store = await open();
  const { items, total } = await store.queue.attention({ nowMs: NOW + 9_000, limit: 9 });
  await store.close();
  expect(total).toBe(2);
  expect(items).toMatchObject([
    {
      reason: "failed",
      deliveries: 1_000,
      at_least: true,
      published_from: "2026-02-01T00:00:00.001Z",
      delivery_id: 21_500,
      error: "HTTP 500",
    },
    { reason: "paused", deliveries: 10_000, at_least: true },
  ]);
});
