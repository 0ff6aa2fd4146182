import { join } from "node:path";
import { expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { checkFile } from "../../src/store/libsql/files/file-tasks.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import type { AttemptResult } from "../../src/store/queue.ts";
import type { Store } from "../../src/store/store.ts";
import { claimRequest } from "../support/claim-request.ts";
import { testOwner } from "./owner.ts";
import { rawSql } from "./processes.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const NOW = Date.parse("2026-03-01T12:00:00.000Z");

const open = (): Promise<Store> =>
  openLibsqlStore({ folder: scratch.path, owner: testOwner(), logger: silentLogger });

type Given = Omit<AttemptResult, "deliveryId" | "claimId" | "startedAtMs" | "durationMs">;

/** Finishes the delivery that is due, three milliseconds after its attempt began. */
async function finishDue(store: Store, given: Given, nowMs: number): Promise<void> {
  const { claims } = await store.queue.claim(claimRequest({ nowMs }));
  const { deliveryId, claimId } = claims[0]!;
  const attempt = { deliveryId, claimId, startedAtMs: nowMs + 2, durationMs: 3 };
  await store.queue.finish([{ ...attempt, ...given }], nowMs + 9);
}

const DELIVERED = { outcome: "delivered", status_code: 200, error_code: null, response: null, refusal: null };
const WITHOUT_TIMES = { dns_ms: null, connect_ms: null, first_byte_ms: null };

it("A first attempt that delivered is stored with its delivery, and listed with those after it", async () => {
  const store = await open();
  const { rowid } = await store.catalog.createAction({ action: "a.b", application: "x", schemata: {} }, NOW);
  const names = { application: "x", subscription: "s", action: "a.b", handler: "https://h.example/" };
  await store.catalog.createSubscription({ ...names, maxRetries: 0, active: true, secret: "s" }, NOW);
  const publish = (): Promise<unknown> =>
    store.events.record([{ actionId: rowid, revision: 1, payload: Buffer.from("{}") }], NOW);

  await publish();
  await finishDue(store, { statusCode: 200, ending: "delivered" }, NOW);
  const first = { attempt: 1, started_at: "2026-03-01T12:00:00.002Z", duration_ms: 3, ...DELIVERED };
  expect(await store.queue.find(1)).toMatchObject({
    status: "delivered",
    attempt: 1,
    finished_at: "2026-03-01T12:00:00.009Z",
    attempts: [{ ...first, ...WITHOUT_TIMES }],
  });
  await store.queue.retry(1, NOW + 60_000);
  expect(await store.queue.find(1)).toMatchObject({ status: "pending", attempts: [first] });
  await finishDue(store, { statusCode: 503, ending: "failed" }, NOW + 60_000);
  const second = { attempt: 2, started_at: "2026-03-01T12:01:00.002Z", outcome: "failed", status_code: 503 };
  expect(await store.queue.find(1)).toMatchObject({ status: "failed", attempts: [first, second] });

  // It has something that a delivery has no column for.
  await publish();
  await finishDue(store, { statusCode: 200, ending: "delivered", response: "ok" }, NOW);
  expect((await store.queue.find(2))?.attempts).toMatchObject([{ response: "ok" }]);
  await store.close();

  const file = join(scratch.path, "evreg.db");
  expect(rawSql(file, "SELECT delivery_id, attempt FROM attempt ORDER BY 1, 2")).toEqual([
    { delivery_id: 1, attempt: 2 },
    { delivery_id: 2, attempt: 1 },
  ]);
  expect(await checkFile(file)).toMatchObject({ damaged_events: [] });
});
