import { afterEach, beforeEach, expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import type { AttemptResult } from "../../src/store/queue.ts";
import type { Store } from "../../src/store/store.ts";
import { claimRequest } from "../support/claim-request.ts";
import { testOwner } from "./owner.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const NOW = Date.parse("2026-03-01T12:00:00.000Z");
let store: Store;
let actionId = 0;

const open = async (): Promise<void> => {
  store = await openLibsqlStore({ folder: scratch.path, owner: testOwner(), logger: silentLogger });
};

beforeEach(async () => {
  await open();
  const action = await store.catalog.createAction({ action: "a.b", application: "x", schemata: {} }, NOW);
  actionId = action.rowid;
  const names = { application: "x", subscription: "s", action: "a.b", handler: "https://h.example/" };
  await store.catalog.createSubscription({ ...names, maxRetries: 5, active: true, secret: "s" }, NOW);
});
afterEach(() => store.close());

async function publish(count: number): Promise<void> {
  const event = { actionId, revision: 1, payload: Buffer.from("{}") };
  await store.events.record(
    Array.from({ length: count }, () => event),
    NOW,
  );
}

/** Attempts so many of those that are due, a millisecond after each other. */
async function attempt(
  count: number,
  nowMs: number,
  given: Pick<AttemptResult, "ending" | "statusCode" | "retryAfterMs">,
) {
  const { claims } = await store.queue.claim(claimRequest({ nowMs, limit: count, most: count }));
  expect(claims).toHaveLength(count);
  const results = claims.map(({ deliveryId, claimId }, index) => {
    return Object.assign({ deliveryId, claimId, startedAtMs: nowMs + index, durationMs: 1 }, given);
  });
  await store.queue.finish(results, nowMs + count);
}

const DELIVERED = { ending: "delivered", statusCode: 200 } as const;

async function shown(limit = 50): Promise<string[]> {
  const attempts = await store.queue.attempts(1, limit);
  return attempts.map(({ delivery_id, attempt: number }) => `${delivery_id}.${number}`);
}

it("The last attempts are those that ended last, wherever their deliveries are", async () => {
  await publish(900);
  await attempt(150, NOW, DELIVERED);
  expect(await shown(3)).toEqual(["150.1", "149.1", "148.1"]);
  await store.queue.retry(2, NOW);
  await attempt(1, NOW + 1_000, { ending: "failed", retryAfterMs: 8_000, statusCode: 500 });
  await attempt(1, NOW + 2_000, DELIVERED);
  expect(await shown(3)).toEqual(["151.1", "2.2", "150.1"]);
  expect(await shown(100)).toHaveLength(100);
});

it("After a start they are found in a backlog, among what waits and failed", async () => {
  await publish(900);
  await attempt(300, NOW, DELIVERED);
  await attempt(1, NOW + 1_000, { ending: "failed", retryAfterMs: 98_000, statusCode: 500 });
  await attempt(1, NOW + 2_000, { ending: "failed", statusCode: 400 });
  await store.close();
  await open();
  expect(await shown(4)).toEqual(["302.1", "301.1", "300.1", "299.1"]);
  await attempt(1, NOW + 3_000, DELIVERED);
  expect(await shown(4)).toEqual(["303.1", "302.1", "301.1", "300.1"]);
});
