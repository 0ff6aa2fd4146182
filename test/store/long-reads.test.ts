import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
import { testOwner } from "./owner.ts";
import { rawSql } from "./processes.ts";
import { useScratch } from "./scratch.ts";

const DELIVERIES = 60_000;

describe("a read of very many rows", () => {
  const scratch = useScratch();
  let store: Store;

  beforeEach(async () => {
    const open = async (): Promise<void> => {
      store = await openLibsqlStore({ folder: scratch.path, owner: testOwner(), logger: silentLogger });
    };
    await open();
    for (const action of ["a", "b"])
      await store.catalog.createAction({ action, application: "x", schemata: {} }, 1);
    const subscription = {
      application: "x",
      subscription: "s",
      handler: "https://h.example/",
      maxRetries: 1,
    };
    await store.catalog.createSubscription({ ...subscription, action: "a", active: true, secret: "s" }, 1);
    await store.catalog.updateSubscription(1, { action: "b" }, 1);
    await store.close();
    const series = `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${DELIVERIES})`;
    rawSql(
      join(scratch.path, "evreg.db"),
      `${series} INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
        SELECT n, 1, 1, 1, x'7b7d' FROM n`,
      `${series} INSERT INTO delivery (rowid, event_id, subscription_id, state, attempt, created_ms, finished_ms)
        SELECT n, n, 1, 2, 1, 1, 2 FROM n`,
    );
    await open();
  });
  afterEach(() => store.close());

  /** Its subscription had only events of the other action, each of which has to be looked at. */
  const long = (): Promise<unknown> => store.queue.list({ action: "b", limit: 50 });

  it("does not block writes and other reads", async () => {
    const answers: unknown[] = [];
    const reading = Promise.all([long(), long()].map(async (read) => answers.push(await read)));
    let passed = 0;
    for (; answers.length < 2; passed += 1) {
      await store.tokens.create({ name: "t", scopes: [], hash: `h${passed}` }, 1);
      expect(await store.tokens.find(`h${passed}`)).toBeDefined();
    }
    await reading;
    expect(answers).toEqual([[], []]);
    expect(passed).toBeGreaterThan(5);
  });
});
