import { expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import type { CommitReport } from "../../src/store/health.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
import { claimRequest } from "../support/claim-request.ts";
import { testOwner } from "./owner.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const NAMED = { application: "x", handler: "https://h.example/", maxRetries: 0, active: true, secret: "s" };

const commits: CommitReport[] = [];
const open = (): Promise<Store> =>
  openLibsqlStore({
    folder: scratch.path,
    owner: testOwner(),
    logger: silentLogger,
    commits: { committed: (commit) => void commits.push(commit) },
  });

async function watched(store: Store, action: string, count: number): Promise<void> {
  const subscribe = (_: unknown, n: number): Promise<unknown> =>
    store.catalog.createSubscription({ ...NAMED, action, subscription: `${action} ${n}` }, 1);
  await Promise.all(Array.from({ length: count }, subscribe));
}

it("cuts what makes very many deliveries into several transactions, also when it comes at once", async () => {
  const store = await open();
  const { rowid: actionId } = await store.catalog.createAction(
    { action: "a.b", application: "x", schemata: {} },
    1,
  );
  await watched(store, "a.b", 999);
  const event = { actionId, revision: 1, payload: Buffer.from("{}") };

  // An event and its deliveries are 1,000 rows, and a transaction takes 4,000.
  let before = commits.length;
  const single = await Promise.all(Array.from({ length: 9 }, () => store.events.record([event], 1)));
  expect(single.flat()).toEqual(
    Array.from({ length: 9 }, () => expect.objectContaining({ deliveries: 999 })),
  );
  expect(commits.length - before).toBe(3);

  before = commits.length;
  const batch = await store.events.record(
    Array.from({ length: 9 }, () => event),
    1,
  );
  expect(batch).toEqual(Array.from({ length: 9 }, () => expect.objectContaining({ deliveries: 999 })));
  expect(commits.length - before).toBe(3);

  before = commits.length;
  await store.events.record(
    Array.from({ length: 9 }, () => event),
    1,
    { atomic: true },
  );
  expect(commits.length - before).toBe(1);
  await store.close();
});

it("cuts results that tell very many of what came of them, and tells each once", async () => {
  const store = await open();
  const { rowid: actionId } = await store.catalog.createAction(
    { action: "a.b", application: "x", schemata: {} },
    1,
  );
  await watched(store, "a.b", 1);
  await watched(store, "evreg.delivery.failed", 999);
  const event = { actionId, revision: 1, payload: Buffer.from("{}") };
  await store.events.record(
    Array.from({ length: 9 }, () => event),
    1,
  );
  const { claims } = await store.queue.claim(claimRequest({ nowMs: 2 }));
  const before = commits.length;
  const results = claims.map(({ deliveryId, claimId }) => {
    const next = { kind: "failed" } as const;
    return { deliveryId, claimId, startedAtMs: 2, durationMs: 1, statusCode: 500, next };
  });
  expect(await store.queue.finish(results, 3)).toEqual(
    claims.map(() => ({ kind: "stored", state: "failed" })),
  );
  expect(commits.length - before).toBe(3);
  const { events } = await store.events.list({
    action: "evreg.delivery.failed",
    order: "asc",
    limit: 99,
    page: 1,
  });
  const told = events.map(
    ({ payload }) => (JSON.parse(Buffer.from(payload!).toString()) as { delivery_id: number }).delivery_id,
  );
  expect(told).toEqual(claims.map(({ deliveryId }) => deliveryId));
  await store.close();
});

it("reports each commit: every write in one transaction, and none for a refused one", async () => {
  const store = await open();
  const create = (action: string) =>
    store.catalog.createAction({ action, application: "x", schemata: {} }, 1);
  await create("a.b");
  commits.length = 0;
  await Promise.all([create("a.c"), create("a.d"), create("a.e")]);
  await expect(create("a.b")).rejects.toMatchObject({ code: "conflict" });
  expect(commits.reduce((sum, { writes }) => sum + writes, 0)).toBe(3);
  expect(commits.length).toBeLessThanOrEqual(3);
  for (const { commitMs, fsyncs, tookMs } of commits) {
    expect(fsyncs).toBe(1);
    expect(commitMs).toBeGreaterThan(0);
    expect(tookMs).toBeGreaterThanOrEqual(commitMs);
  }
  await store.close();
});
