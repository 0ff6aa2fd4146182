import { expect } from "vitest";
import type { DeliveryStatus } from "../../src/domain/delivery.ts";
import { closePassedBlocks } from "../../src/store/libsql/events/counts.ts";
import { type ExpiredEvents, findExpired, removeEvents } from "../../src/store/libsql/history/retention.ts";
import { audited } from "../../src/store/libsql/audited-writes.ts";
import { listEvents } from "../../src/store/libsql/events/list.ts";
import { claimDue } from "../../src/store/libsql/queue/claim.ts";
import { listDeliveries } from "../../src/store/libsql/queue/delivery-list.ts";
import { finishAttempts } from "../../src/store/libsql/queue/finish.ts";
import { recordAndClaim } from "../../src/store/libsql/queue/record-claim.ts";
import { releaseLeases } from "../../src/store/libsql/queue/release.ts";
import { ATTEMPTS } from "../../src/store/libsql/queue/attempts.ts";
import { skipDelivery } from "../../src/store/libsql/queue/deliveries.ts";
import { claimAnswer, claimCall, ClaimedSubscriptions } from "../../src/store/libsql/queue/wire.ts";
import type { Connection } from "../../src/store/libsql/thread/connection.ts";
import { ByteWriter } from "../../src/store/libsql/thread/protocol.ts";
import { claimRequest } from "../support/claim-request.ts";
import { eventBatch, finished } from "./batches.ts";
import { loadLastNumbers } from "../../src/store/libsql/events/timeline.ts";

const LEASE_MS = 30_000;

interface ModelEvent {
  readonly rowid: number;
  readonly action: number;
  readonly atMs: number;
  readonly key: string | null;
}

interface ModelSubscription {
  readonly rowid: number;
  readonly action: number;
  isActive: boolean;
  isDeleted: boolean;
}

interface ModelDelivery {
  readonly rowid: number;
  readonly event: number;
  readonly subscription: ModelSubscription;
  state: "open" | "delivered" | "failed" | "filtered";
  leasedUntilMs: number | undefined;
  failures: number;
  attempts: number;
}

export type Ending = "delivered" | "failed" | "filtered" | "retry" | "returned" | "under way";

const ATTEMPT_ENDINGS = {
  delivered: "delivered",
  filtered: "filtered",
  retry: "failed",
  failed: "failed",
  returned: "interrupted",
} as const;

/** A data file beside what must be in it. Places are shares of a list's length, from 0 to below 1. */
export class RetentionWorld {
  readonly #connection: Connection;
  readonly #events = new Map<number, ModelEvent>();
  readonly #deliveries = new Map<number, ModelDelivery>();
  readonly #subscriptions: ModelSubscription[] = [];
  #nowMs = 10_000_000;
  /** How many events were removed in all. */
  removed = 0;

  constructor(connection: Connection, actions: number) {
    this.#connection = connection;
    connection.write((sql) => {
      for (let action = 0; action < actions; action += 1) {
        audited.createAction(sql, { action: `a${action}`, application: "x", schemata: {} }, 1);
      }
    });
  }

  publish(all: readonly (readonly [action: number, key: string | null])[], aheadMs: number): void {
    this.#nowMs += aheadMs;
    const call = {
      nowMs: this.#nowMs,
      atomic: false,
      rows: all.flatMap(([action]) => [action + 1, 1, 0, 2]),
      keys: all.map(([, key]) => key),
    };
    const [outcomes = []] = this.#connection.write((sql) =>
      recordAndClaim(sql, [eventBatch(call)], Buffer.from("{}")),
    );
    for (const [index, [action, key]] of all.entries()) {
      const outcome = outcomes[index];
      const used = key === null ? undefined : [...this.#events.values()].find((each) => each.key === key);
      const kind = used === undefined ? "recorded" : used.action === action ? "replayed" : "key_conflict";
      expect(outcome).toMatchObject(used === undefined ? { kind } : { kind, rowid: used.rowid });
      if (outcome?.kind !== "recorded") continue;
      const { rowid, timestampedMs: atMs } = outcome;
      this.#events.set(rowid, { rowid, action, atMs, key });
      this.#expectDeliveries(rowid, action);
    }
  }

  #expectDeliveries(event: number, action: number): void {
    const rows = this.#connection.read.rows<{ id: number; subscription: number }>(
      "SELECT rowid AS id, subscription_id AS subscription FROM delivery WHERE event_id = ? ORDER BY 2",
      event,
    );
    const awaiting = this.#subscriptions.filter(
      (each) => each.action === action && each.isActive && !each.isDeleted,
    );
    expect(rows.map(({ subscription }) => subscription)).toEqual(awaiting.map(({ rowid }) => rowid));
    for (const [index, { id: rowid }] of rows.entries()) {
      const subscription = awaiting[index];
      if (subscription === undefined) throw new Error("compared above");
      const fresh = { state: "open", leasedUntilMs: undefined, failures: 0, attempts: 0 } as const;
      this.#deliveries.set(rowid, { rowid, event, subscription, ...fresh });
    }
  }

  subscribe(action: number): void {
    const name = `s${this.#subscriptions.length}`;
    const record = { application: "x", subscription: name, action: `a${action}`, handler: "h", secret: "s" };
    const { rowid } = this.#connection.write((sql) =>
      audited.createSubscription(sql, { ...record, maxRetries: 1_000, active: true }, 1),
    );
    this.#subscriptions.push({ rowid, action, isActive: true, isDeleted: false });
  }

  change(place: number, to: "paused" | "active" | "deleted"): void {
    const found = at(
      this.#subscriptions.filter(({ isDeleted }) => !isDeleted),
      place,
    );
    if (found === undefined) return;
    this.#connection.write((sql) => {
      if (to === "deleted") audited.deleteSubscription(sql, found.rowid, 1);
      else audited.updateSubscription(sql, found.rowid, { active: to === "active" }, this.#nowMs);
    });
    if (to === "deleted") found.isDeleted = true;
    else found.isActive = to === "active";
  }

  send(most: number, endings: readonly Ending[]): void {
    const { claims } = this.#connection.write((sql) => {
      const out = new ByteWriter();
      const request = claimRequest({ nowMs: this.#nowMs, limit: most, leaseMs: LEASE_MS });
      return claimAnswer(
        claimDue(sql, claimCall(request), out),
        out.pack(),
        new ClaimedSubscriptions(undefined),
      );
    });
    for (const [index, { deliveryId, claimId, event }] of claims.entries()) {
      const delivery = this.#deliveries.get(deliveryId);
      if (delivery === undefined) throw new Error("a delivery came from nowhere");
      expect(this.#events.has(event.eventId)).toBe(true);
      expect(["pending", "waiting"]).toContain(statusOf(delivery));
      delivery.leasedUntilMs = this.#nowMs + LEASE_MS;
      const ending = endings[index % endings.length] ?? "delivered";
      if (ending !== "under way") this.#finish(delivery, claimId, ending);
    }
  }

  #finish(delivery: ModelDelivery, claimId: number, ending: Exclude<Ending, "under way">): void {
    const result = { deliveryId: delivery.rowid, claimId, statusCode: 500, ending: ATTEMPT_ENDINGS[ending] };
    const results = finished([result], this.#nowMs, { retryScheduleMs: [0] });
    const { answer } = this.#connection.write((sql) => {
      const finish = finishAttempts(sql, results, new Uint8Array(1));
      if (ending === "failed") skipDelivery(sql, delivery.rowid, this.#nowMs);
      return finish;
    });
    const isEnded = ending === "delivered" || ending === "filtered";
    expect(answer).toMatchObject([{ kind: "stored", state: isEnded ? ending : "pending" }]);
    delivery.leasedUntilMs = undefined;
    if (ending === "failed" || ending === "delivered" || ending === "filtered") delivery.state = ending;
    if (ending === "filtered") return;
    delivery.attempts += 1;
    if (ending === "failed" || ending === "retry") delivery.failures += 1;
  }

  releaseLeases(): void {
    this.#nowMs += LEASE_MS;
    this.#connection.write((sql) => releaseLeases(sql, "expired", this.#nowMs));
    for (const delivery of this.#deliveries.values()) {
      if (delivery.leasedUntilMs === undefined || delivery.leasedUntilMs > this.#nowMs) continue;
      delivery.leasedUntilMs = undefined;
      delivery.attempts += 1;
    }
  }

  retry(place: number): void {
    const delivery = at([...this.#deliveries.values()], place);
    if (delivery === undefined) return;
    const work = (): unknown =>
      this.#connection.write((sql) => audited.retryDelivery(sql, delivery.rowid, this.#nowMs));
    const may = ["failed", "filtered", "waiting", "delivered"].includes(statusOf(delivery));
    if (!may || delivery.subscription.isDeleted) {
      expect(work).toThrow();
      return;
    }
    work();
    delivery.state = "open";
    delivery.failures = 0;
  }

  /** Rowids go on in another block of the counts, as after thousands of events. */
  skipRowids(by: number): void {
    this.#connection.write((sql) => {
      const { event } = loadLastNumbers(sql);
      if (sql.run("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'event'", by) > 0) {
        closePassedBlocks(sql, event, event + by);
      }
    });
  }

  /**
   * Removes what is old enough, at most `calls` times, with `retryAt` between finding and
   * removing.
   */
  prune(given: { keepMs: number; most: number; rows: number; calls: number; retryAt: number }): void {
    const { keepMs, most, rows, retryAt } = given;
    const beforeMs = this.#nowMs - keepMs;
    let { calls } = given;
    for (let after: number | undefined = 0; after !== undefined && calls > 0;) {
      const found: ExpiredEvents = findExpired(this.#connection.read, { beforeMs }, after, most);
      const upTo = found.after ?? Infinity;
      const removable = this.#rowids().filter(
        (id) => id > (after ?? 0) && id <= upTo && this.#isRemovable(id, beforeMs),
      );
      expect(found.events).toEqual(removable);
      this.retry(retryAt);
      for (let left = found.events; left.length > 0 && calls > 0; calls -= 1) {
        const some = left;
        const step = this.#connection.write((sql) => removeEvents(sql, some, rows));
        expect(step.handled + step.deliveries).toBeGreaterThan(0);
        this.#noteRemoved(left, step, beforeMs);
        left = left.slice(step.handled);
      }
      ({ after } = found);
    }
  }

  #noteRemoved(
    asked: readonly number[],
    step: { readonly handled: number; readonly events: number; readonly deliveries: number },
    beforeMs: number,
  ): void {
    const gone = asked.slice(0, step.handled).filter((id) => this.#isRemovable(id, beforeMs));
    expect(step.events).toBe(gone.length);
    for (const id of gone) this.#events.delete(id);
    // Of the first that is not handled, some deliveries may be gone.
    const there = new Set(
      this.#connection.read.rows<{ id: number }>("SELECT rowid AS id FROM delivery").map(({ id }) => id),
    );
    const reached = new Set(asked.slice(0, step.handled + 1));
    let deliveries = 0;
    for (const [id, delivery] of this.#deliveries) {
      if (there.has(id)) continue;
      expect(reached.has(delivery.event)).toBe(true);
      expect(isUnfinished(delivery)).toBe(false);
      this.#deliveries.delete(id);
      deliveries += 1;
    }
    expect(step.deliveries).toBe(deliveries);
    this.removed += gone.length;
  }

  #isRemovable(id: number, beforeMs: number): boolean {
    const event = this.#events.get(id);
    if (event === undefined || event.atMs >= beforeMs) return false;
    return ![...this.#deliveries.values()].some((each) => each.event === id && isUnfinished(each));
  }

  #rowids(): number[] {
    return [...this.#events.keys()];
  }

  /** All that is left is what it must be, by lists, by look-ups and in the file itself. */
  expectRight(fromMs: number, toMs: number): void {
    const range = { fromMs: 10_000_000 + fromMs, toMs: 10_000_000 + toMs };
    for (const query of [{}, { action: "a0" }, { action: "a1", ...range }, range]) {
      const wanted = [...this.#events.values()].filter(
        ({ action, atMs }) =>
          (!("action" in query) || query.action === `a${action}`) &&
          (!("fromMs" in query) || (atMs >= query.fromMs && atMs < query.toMs)),
      );
      expect(this.#walkEvents(query)).toEqual(wanted.map(({ rowid }) => rowid));
    }
    const sql = this.#connection.read;
    const list = (status?: DeliveryStatus): unknown[] =>
      listDeliveries(sql, { limit: 500, ...(status === undefined ? {} : { status }) })
        .deliveries.toReversed()
        .map((each) => [each.rowid, each.event_id, each.status]);
    const all = [...this.#deliveries.values()].map((each) => [each.rowid, each.event, statusOf(each)]);
    expect(list()).toEqual(all);
    for (const status of ["pending", "delivering", "held", "cancelled", "failed", "filtered"] as const) {
      expect(list(status)).toEqual(all.filter((each) => each[2] === status));
    }
    const attempts = [...this.#deliveries.values()].reduce((sum, each) => sum + each.attempts, 0);
    expect(sql.first(`SELECT count(*) AS n FROM ${ATTEMPTS}`)).toEqual({ n: attempts });
    expect(sql.rows("PRAGMA foreign_key_check")).toEqual([]);
    expect(sql.rows("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  }

  #walkEvents(query: object): number[] {
    const ids: number[] = [];
    for (let after = 0; ;) {
      const page = { order: "asc" as const, limit: 7, page: 1, after, ...query };
      const { events } = listEvents(this.#connection.read, page, new ByteWriter());
      ids.push(...events.map(({ rowid }) => rowid));
      const last = events.at(-1);
      if (last !== undefined) {
        after = last.rowid;
        continue;
      }
      const first = { ...page, after: 0 };
      const { total } = listEvents(this.#connection.read, first, new ByteWriter());
      expect(total).toBe(ids.length);
      return ids;
    }
  }
}

function statusOf({ state, leasedUntilMs, failures, subscription }: ModelDelivery): DeliveryStatus {
  if (state !== "open") return state;
  if (leasedUntilMs !== undefined) return "delivering";
  if (subscription.isDeleted) return "cancelled";
  if (!subscription.isActive) return "held";
  return failures > 0 ? "waiting" : "pending";
}

function isUnfinished(delivery: ModelDelivery): boolean {
  return !["delivered", "failed", "filtered", "cancelled"].includes(statusOf(delivery));
}

function at<T>(all: readonly T[], place: number): T | undefined {
  return all[Math.floor(place * all.length)];
}
