import type { BacklogCause } from "../../../domain/stats/stats.ts";
import type { Backlog, BacklogOf } from "../../queue.ts";
import { matchOf } from "../catalog/matching.ts";
import { type Sql, timeOf } from "../thread/sql.ts";
import { earliestOf } from "../../rules/fair-share.ts";
import {
  type BacklogWindow,
  backlogWindows,
  type DueRange,
  dueRange,
  isInRange,
  laterRange,
  loadLeased,
} from "./backlog-windows.ts";
import { DELIVERY_STATE, LEASE_OF, REQUESTED, UNFINISHED_STATES } from "./delivery-state.ts";

/** Deliveries that one answer may count: some 30 ms of the thread that reads. */
const MAX_COUNTED = 200_000;

/** The parts of a backlog, to which deliveries are added. */
class Parts {
  readonly #parts = new Map<BacklogCause, { deliveries: number; sinceMs: number | undefined }>();

  add(cause: BacklogCause, deliveries: number, sinceMs?: number): void {
    const part = this.of(cause);
    this.#parts.set(cause, {
      // After the clock was set back, more may be leased than are due.
      deliveries: part.deliveries + Math.max(0, deliveries),
      sinceMs: sinceMs === undefined ? part.sinceMs : earliestOf(part.sinceMs, sinceMs),
    });
  }

  of(cause: BacklogCause): Backlog["due"] {
    return this.#parts.get(cause) ?? { deliveries: 0, sinceMs: undefined };
  }
}

/**
 * What is unfinished, by what it waits for: each subscription's deliveries are counted in the index of what is due, up to `max`
 * of all, and then added to the parts that they belong to.
 * @param of whose deliveries count; by default all
 */
export function countBacklog(sql: Sql, nowMs: number, of?: BacklogOf, max = MAX_COUNTED): Backlog {
  const chosen = of === undefined ? undefined : chosenBy(sql, of);
  const parts = new Parts();
  for (const { id, leased, since_ms: sinceMs } of loadLeased(sql)) {
    if (chosen?.has(id) !== false) parts.add("delivering", leased, sinceMs);
  }
  const windows = [...backlogWindows(sql, nowMs, chosen).values()];
  const counter = new Counter(sql, max);
  const first = counter.countFirst(windows);
  for (const [index, window] of windows.entries()) addWindow(parts, window, first[index]!, counter);
  const isWhole = !counter.isCut;
  const [due, busy, paced, waiting] = [
    parts.of("due"),
    parts.of("busy"),
    parts.of("paced"),
    parts.of("waiting"),
  ];
  const [blocked, delivering, held] = [parts.of("blocked"), parts.of("delivering"), parts.of("held")];
  return { due, busy, paced, waiting, blocked, delivering, held, isWhole };
}

/** The rowids of the subscriptions. */
function chosenBy(sql: Sql, { applications, subscription, action }: BacklogOf): ReadonlySet<number> {
  const match = action === undefined ? undefined : matchOf(action, "a.action");
  const matching =
    match === undefined
      ? ""
      : `AND EXISTS (SELECT 1 FROM binding AS b INDEXED BY binding_subscription CROSS JOIN action AS a ON a.rowid = b.action_id
          WHERE b.subscription_id = s.rowid AND b.receives = 1 AND ${match.condition})`;
  const rows = sql.rows<{ id: number }>(
    `SELECT s.rowid AS id FROM subscription AS s WHERE s.deleted_ms IS NULL
      AND (? IS NULL OR s.rowid = ?) AND (? IS NULL OR s.application IN (SELECT value FROM json_each(?))) ${matching}`,
    ...twice(subscription ?? null),
    ...twice(applications === undefined ? null : JSON.stringify(applications)),
    ...(match?.values ?? []),
  );
  return new Set(rows.map(({ id }) => id));
}

function twice<T>(value: T): [T, T] {
  return [value, value];
}

function addWindow(parts: Parts, window: BacklogWindow, first: FirstCount, counter: Counter): void {
  const { dueCause, laterCause, notBeforeMs, leasedDue, leasedLater } = window;
  const due = counter.count(dueRange(window), first.due);
  const later = counter.count(laterRange(window), first.later);
  parts.add(dueCause, due - leasedDue, sinceOf(first, notBeforeMs));
  parts.add(laterCause, later - leasedLater);
  if (window.isKeyed) addBehind(parts, window, counter);
}

/** Since when the first of what is due is. */
function sinceOf({ priority, dueMs }: FirstCount, notBeforeMs: number): number | undefined {
  if (dueMs === null) return undefined;
  return priority === REQUESTED ? dueMs : Math.max(dueMs, notBeforeMs);
}

function addBehind(parts: Parts, { id, isActive, blockedKeys }: BacklogWindow, counter: Counter): void {
  const { behind, blocked } = counter.countBehind(id, [...blockedKeys.keys()]);
  parts.add(isActive ? "waiting" : "held", behind - blocked);
  if (blocked > 0) parts.add("blocked", blocked, Math.min(...blockedKeys.values()));
}

/** What is due and later of a subscription, up to the limit of a first look, and the first that is due and not leased. */
interface FirstCount {
  readonly due: number;
  readonly later: number;
  readonly priority: number | null;
  readonly dueMs: number | null;
}

function countIn(range: string): string {
  return `(SELECT count(*) FROM (SELECT 1 FROM delivery INDEXED BY delivery_due WHERE ${isInRange(range)} LIMIT ?2))`;
}

/** Counts deliveries until there are too many. */
class Counter {
  readonly #sql: Sql;
  #remaining: number;
  /** Most that the first look counts of each range. */
  #firstLimit = 1;
  /** Whether some were not counted. */
  isCut = false;

  constructor(sql: Sql, max: number) {
    this.#sql = sql;
    this.#remaining = max;
  }

  /** All subscriptions in one statement, half of what may be counted at most. */
  countFirst(windows: readonly BacklogWindow[]): readonly FirstCount[] {
    this.#firstLimit = Math.max(1, Math.floor(this.#remaining / 4 / Math.max(1, windows.length)));
    const { counts } = this.#sql.first<{ counts: string }>(
      `SELECT json_group_array(json_array(${countIn("(p.value -> 0)")}, ${countIn("(p.value -> 1)")},
          json((SELECT json_array(priority, ${timeOf("due_ms")}) FROM delivery INDEXED BY delivery_due
            WHERE ${isInRange("(p.value -> 0)")} AND NOT ${LEASE_OF("delivery")} ORDER BY priority, due_ms LIMIT 1)))) AS counts
        FROM json_each(?1) AS p`,
      JSON.stringify(windows.map((window) => [dueRange(window), laterRange(window)])),
      this.#firstLimit,
    )!;
    return (JSON.parse(counts) as [number, number, [number, number] | null][]).map(([due, later, first]) => {
      this.#remaining -= due + later;
      const [priority = null, dueMs = null] = first ?? [];
      return { due, later, priority, dueMs };
    });
  }

  /** @param counted by the first look */
  count(range: DueRange, counted: number): number {
    if (counted < this.#firstLimit) return counted;
    const limit = counted + Math.max(0, this.#remaining);
    const { found } = this.#sql.first<{ found: number }>(
      `SELECT count(*) AS found FROM (
          SELECT 1 FROM delivery INDEXED BY delivery_due WHERE ${isInRange("?1")} LIMIT ?2)`,
      JSON.stringify(range),
      limit,
    )!;
    this.#remaining -= found - counted;
    if (found === limit) this.isCut = true;
    return found;
  }

  /** How many are behind others of their keys, and how many of these behind one that blocks. */
  countBehind(subscription: number, blockedKeys: readonly number[]): { behind: number; blocked: number } {
    const limit = Math.max(0, this.#remaining);
    const { read, behind, blocked } = this.#sql.first<{ read: number; behind: number; blocked: number }>(
      `SELECT count(*) AS read, coalesce(sum(state = ${DELIVERY_STATE.behind}), 0) AS behind,
          coalesce(sum(state = ${DELIVERY_STATE.behind} AND key IN (SELECT value FROM json_each(?2))), 0) AS blocked
        FROM (SELECT key, state FROM delivery INDEXED BY delivery_key
          WHERE subscription_id = ?1 AND key IS NOT NULL AND state IN ${UNFINISHED_STATES} LIMIT ?3)`,
      subscription,
      JSON.stringify(blockedKeys),
      limit,
    )!;
    this.#remaining -= behind;
    if (read === limit) this.isCut = true;
    return { behind, blocked };
  }
}
