import { expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import type { CommitReport } from "../../src/store/libsql/health.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
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

it("cuts a batch that makes very many deliveries into several transactions, unless it is atomic", async () => {
  const store = await open();
  const { rowid: actionId } = await store.catalog.createAction(
    { action: "a.b", application: "x", schemata: {} },
    1,
  );
  await watched(store, "a.b", 999);
  const event = { actionId, revision: 1, payload: Buffer.from("{}") };

  // An event and its deliveries are 1,000 rows, and a transaction takes 4,000.
  let before = commits.length;
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
