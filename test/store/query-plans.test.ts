import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import type { DeliverySelection, FinishOptions } from "../../src/store/queue.ts";
import { DELIVERY_STATUSES } from "../../src/model/delivery.ts";
import { BACKLOG_CAUSES } from "../../src/domain/stats/stats.ts";
import { REPLAY_SELECTIONS } from "../../src/model/replay.ts";
import type { EventSelection } from "../../src/store/events.ts";
import { deleteEvents } from "../../src/store/sql/events/counts.ts";
import { createAction } from "../../src/store/sql/catalog/actions.ts";
import { countDeliveries, listAttempts, retryDelivery } from "../../src/store/sql/queue/deliveries.ts";
import * as subscriptions from "../../src/store/sql/catalog/subscriptions.ts";
import { listEvents } from "../../src/store/sql/events/list.ts";
import * as replays from "../../src/store/sql/history/replays.ts";
import { recordChange } from "../../src/store/sql/history/audit.ts";
import { removeExpired } from "../../src/store/sql/history/retention.ts";
import { listAttention } from "../../src/store/sql/queue/attention.ts";
import { claimDue, claimNext, recordAndClaim } from "../../src/store/sql/queue/claim.ts";
import { listDeliveries } from "../../src/store/sql/queue/delivery-list.ts";
import { dropAttempts, finishAttempts } from "../../src/store/sql/queue/finish.ts";
import { releaseLeases } from "../../src/store/sql/queue/leases.ts";
import { countBacklog, countPending } from "../../src/store/sql/queue/backlog.ts";
import type { WriteConnection } from "../../src/store/libsql/connection.ts";
import { type Work, workOn } from "../../src/store/sql/operation.ts";
import type { SqlValue } from "../../src/store/sql/sql.ts";
import { Vault } from "../../src/store/secret-cipher.ts";
import type { SyncSql, SyncWork } from "../../src/store/libsql/statements.ts";
import type { EventBatch, WireEvent } from "../../src/store/sql/queue/claim.ts";
import type { FinishedRow } from "../../src/store/sql/queue/finish.ts";
import { claimRequest } from "../support/claim-request.ts";
import { openFile } from "./open-file.ts";
import { subscriptionTo, useScratch } from "./opened-store.ts";

/** The tables that grow without end; by the names they have in the statements. */
const GROWING = /^SCAN (event|e|event_count|c|delivery|d|w|b|f|attempt)\b(?! VIRTUAL TABLE)/;
const SORTED = /USE TEMP B-TREE FOR ORDER BY/;

/** A walk through an index of what is unfinished is none. */
function scans(plans: readonly string[]): string[] {
  const unfinished = /USING (COVERING )?INDEX delivery_(due|leased)/;
  return plans.filter((detail) => GROWING.test(detail) && !unfinished.test(detail));
}

/** What operations work with, and these bytes. */
function withBytes(sql: SyncSql, bytes = new Uint8Array(1)): SyncWork {
  return workOn(sql, new Vault(undefined), new Uint8Array(bytes).buffer);
}

/** An event of the first action. */
function incoming(given: Partial<WireEvent>): WireEvent {
  return { actionId: 1, revision: 1, offset: 0, length: 1, ...given };
}

function batchOf(nowMs: number, ...events: readonly Partial<WireEvent>[]): EventBatch {
  return { atomic: false, nowMs, events: events.map(incoming) };
}

/** What one test does, and what is undone then. */
type Task = (sql: SyncWork) => Promise<unknown>;

const PAGE = { order: "desc" as const, limit: 1, page: 1 };
const events = (query: Partial<EventSelection>) => (sql: Work) => listEvents(sql, { ...PAGE, ...query });
const deliveries =
  (query: Partial<DeliverySelection>, extent?: Parameters<typeof listDeliveries>[2]) => (sql: Work) =>
    listDeliveries(sql, { limit: 50, ...query }, extent);

describe("query plans", () => {
  const scratch = useScratch();
  let connection: WriteConnection;
  beforeEach(async () => {
    connection = await openFile(join(scratch.path, "one.db"));
    await connection.write(async (sql) => {
      await createAction(sql, { action: "a", application: "x", schemata: {} }, 1);
      await createAction(sql, { action: "b", application: "x", schemata: {} }, 1);
      for (const action of ["a", "b"]) await subscriptions.createSubscription(sql, subscriptionTo(action), 1);
      await recordAndClaim(withBytes(sql, Buffer.from("0")), [batchOf(1, { idempotencyKey: "k" }, {})]);
    });
  });

  /** The engine's plan for every statement that `task` runs. */
  async function plansOf(task: Task): Promise<string[]> {
    const plans: string[] = [];
    const explain = (sql: SyncSql, text: string, values: SqlValue[]): void => {
      const rows = sql.rows<{ detail: string }>(`EXPLAIN QUERY PLAN ${text}`, ...values);
      plans.push(...rows.map(({ detail }) => detail));
    };
    const observed = (sql: SyncSql): SyncSql =>
      new Proxy(sql, {
        get:
          (_, method: keyof SyncSql) =>
          (text: string, ...values: SqlValue[]) => {
            explain(sql, text, values);
            return sql[method](text, ...values);
          },
      });
    // The driver leaves the explanation of a write open, and nothing can be committed beside an open statement.
    const done = new Error("undo");
    const undone = (): Promise<never> =>
      connection.write(async (sql) => {
        await task(withBytes(observed(sql)));
        throw done;
      });
    await expect(undone()).rejects.toThrow(done);
    expect(plans.length).toBeGreaterThan(0);
    return plans;
  }

  /** The same for a task that may scan nothing that grows. */
  async function searchesOf(task: Task): Promise<string[]> {
    const plans = await plansOf(task);
    expect(scans(plans)).toEqual([]);
    return plans;
  }

  /** And that sorts nothing. */
  async function walksOf(task: Task): Promise<string[]> {
    const plans = await searchesOf(task);
    expect(plans.filter((detail) => SORTED.test(detail))).toEqual([]);
    return plans;
  }

  const claim = claimRequest({ nowMs: 9 });
  /** Ends the attempt at the first delivery that is due. */
  async function finish(sql: Work, row: Partial<FinishedRow>, options: FinishOptions = {}): Promise<void> {
    const { claimId } = (await claimDue(sql, claim)).claims[0]!;
    const result = { deliveryId: 1, claimId, ending: "delivered", startedAtMs: 1, durationMs: 1 } as const;
    await finishAttempts(sql, [{ ...result, ...row, nowMs: 9, options }]);
  }

  it.each<[string, Task]>([
    ["an event", (sql) => recordAndClaim(withBytes(sql), [batchOf(2, { idempotencyKey: "l" })])],
    ["a success", (sql) => finish(sql, { statusCode: 200 })],
    [
      "a failure that slows its subscription, and a retry",
      async (sql) => {
        const times = { dnsMs: 1, connectMs: 1, firstByteMs: 1 };
        const failed = {
          statusCode: 503,
          ending: "failed",
          connection: times,
          handler: "https://h.example/",
          slowUntilMs: 99,
        } as const;
        await finish(sql, failed, { disableAfterMs: 9 });
        expect(await claimDue(sql, claim)).toMatchObject({ claims: [], nextDueAtMs: 99 });
        await retryDelivery(sql, 1, 9);
        return claimDue(sql, claim);
      },
    ],
    ["a claim of the next one", (sql) => claimNext(sql, [{ index: 0, key: [1, 1], leaseMs: 1 }], 9)],
    ["expired leases", (sql) => releaseLeases(sql, 5)],
    ["attempts that are too many", (sql) => dropAttempts(sql, [[1, 51]])],
    ["a pause", (sql) => subscriptions.updateSubscription(sql, 1, { active: false }, 9)],
    ["a subscription's end", (sql) => subscriptions.deleteSubscription(sql, 1, 9)],
    ["another secret", (sql) => subscriptions.rotateSecret(sql, 1, { secret: "t", overlapMs: 1 }, 9)],
    ["the counts of a page's events", (sql) => countDeliveries(sql, [1, 2], ["x"])],
    ["the last attempts of a subscription", (sql) => listAttempts(sql, 1, 50)],
    [
      "what needs a person",
      async (sql) => {
        for (const id of [1, 2]) await subscriptions.updateSubscription(sql, id, { active: false }, 1);
        const members = [{ member: "active", before: true, after: false }];
        const by = { name: "x", tokenId: null, address: null };
        await recordChange(sql, { change: "subscription.updated", id: 2, name: "x/t#a.b", members }, 1, by);
        return listAttention(sql, { nowMs: 9, limit: 9 });
      },
    ],
    [
      "the end of events",
      async (sql) => {
        sql.run("DELETE FROM delivery WHERE event_id = 2");
        return deleteEvents(sql, [2]);
      },
    ],
  ])("%s: reads only the rows that it needs", async (_, task) => {
    await searchesOf(task);
  });

  it("lists of events walk in order, or sort what is close together", async () => {
    for (const query of [{}, { after: 2 }, { page: 2 }, { fromMs: 1, toMs: 9 }]) {
      await walksOf(events(query));
      await walksOf(events({ action: "a", ...query }));
    }
    for (const query of [{ applications: ["x"] }, { applications: ["x"], after: 2, fromMs: 1 }]) {
      const plans = await searchesOf(events(query));
      expect(plans).toContain(
        "SEARCH e USING COVERING INDEX event_action (action_id=? AND rowid>? AND rowid<?)",
      );
      expect(plans.filter((detail) => SORTED.test(detail))).toHaveLength(1);
    }
  });

  it("lists of deliveries walk in order, or gather what is in no order through an index", async () => {
    for (const query of [
      {},
      { after: 2 },
      { subscription: 1 },
      { action: "a" },
      { applications: ["x"] },
      { fromMs: 1, toMs: 9 },
      { status: "failed" },
      { status: "filtered" },
    ] as const) {
      await walksOf(deliveries(query));
    }
    const causes = BACKLOG_CAUSES.map((name) => ({ cause: { name, nowMs: 9 } }));
    const gathered = [...causes, ...DELIVERY_STATUSES.map((status) => ({ status }))];
    for (const query of gathered.flatMap((one) => [one, { ...one, subscription: 1 }, { ...one, event: 1 }])) {
      await searchesOf(deliveries(query));
      await searchesOf(deliveries(query, { lookedAt: 9, gathered: -1 }));
    }
  });

  it("what waits in an order is found through the index of its keys", async () => {
    const settings = { ordered: { key: "/k" } };
    await connection.write((sql) => subscriptions.updateSubscription(sql, 1, { settings }, 1));
    const payload = Buffer.from('{"k":1}');
    const { length } = payload;
    const plans = await walksOf(async (sql) => {
      await recordAndClaim(withBytes(sql, payload), [batchOf(2, { length }, { length })]);
      await finish(sql, {});
      await retryDelivery(sql, 1, 9);
      await releaseLeases(sql, 9_999_999);
      await subscriptions.findSubscription(sql, 1);
      await subscriptions.updateSubscription(sql, 1, { settings: { on_exhausted: "skip" } }, 9);
      await subscriptions.updateSubscription(sql, 1, { settings: { ordered: false } }, 9);
    });
    const byKey = plans.filter((detail) => /delivery_key\b/.test(detail));
    expect(byKey.length).toBeGreaterThan(7);
    for (const detail of byKey) {
      // With a part of the order as its end, a search would walk all that is behind the first. Of what is pending (`r`) there is one.
      const end = detail.includes(" r ") ? /(?: AND event_id>\?)?\)/ : /\)/;
      const start = /INDEX delivery_key \(subscription_id=\? AND key=\? AND state=\?/;
      expect(detail).toMatch(new RegExp(start.source + end.source));
    }
  });

  it("waiting deliveries are counted through their index", async () => {
    const plans = await walksOf(async (sql) => {
      await countBacklog(sql, 9, undefined, 4);
      await countPending(sql, 1);
    });
    const ofDeliveries = plans.filter((detail) => /(SCAN|SEARCH) (delivery|d|b)\b/.test(detail));
    expect(ofDeliveries.length).toBeGreaterThan(4);
    for (const detail of ofDeliveries) {
      expect(detail).toMatch(
        /^SEARCH (.* COVERING INDEX delivery_(due|key|subscription)|d USING INTEGER PRIMARY KEY)/,
      );
    }
  });

  it("expired events are found and removed without reading all of them", async () => {
    await walksOf(async (sql) => {
      sql.run("UPDATE delivery SET state = 2, due_ms = NULL WHERE event_id = 1");
      await removeExpired(sql, { fromMs: 0, beforeMs: 9 });
    });
  });

  it("replays walk the events of one action, or the failed or waiting ones of one subscription, in order", async () => {
    for (const selection of REPLAY_SELECTIONS) {
      const searched = await plansOf(async (sql) => {
        const request = { subscription: 1, selection, fromMs: 0 };
        await replays.countReplay(sql, request);
        await replays.startReplay(sql, request, 9);
        if (selection === "waiting") sql.run("UPDATE delivery SET failures = 1, due_ms = 99");
        else sql.run("UPDATE delivery SET state = 3, due_ms = NULL");
        await replays.advanceReplay(sql, 1, {
          nowMs: 9,
          maxQueued: 10,
          maxDue: 10,
          maxUnfinished: 10,
          total: 1,
        });
        await replays.cancelReplay(sql, 1, 9);
      });
      const plans = searched.filter((detail) => detail !== "SCAN delivery");
      expect(scans(plans)).toEqual([]);
      expect(plans.filter((detail) => SORTED.test(detail))).toEqual([]);
      // Each window of the walk has both its ends in the search.
      const walked =
        selection === "failed" || selection === "waiting"
          ? new RegExp(`^SEARCH d .*delivery_${selection}_event`)
          : /^SEARCH e .*event_action/;
      const searches = plans.filter((detail) => walked.test(detail));
      expect(searches.length).toBeGreaterThan(1);
      for (const detail of searches) expect(detail).toMatch(/id>\? AND \w+<\?\)$/);
    }
  });
});
