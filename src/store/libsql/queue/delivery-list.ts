import type { Delivery, DeliveryStatus } from "../../../domain/delivery.ts";
import { rangesAfter, type RowidRange, idRangesOf } from "../events/timeline.ts";
import type { DeliverySelection } from "../../queue.ts";
import type { Steps } from "../../../runtime/yielding.ts";
import { keysOfText } from "../../../domain/order-key.ts";
import type { BacklogCause } from "../../../domain/stats/stats.ts";
import { matchOf } from "../catalog/matching.ts";
import { isRowid, race, type Sql, type SqlValue } from "../thread/sql.ts";
import {
  type BacklogWindow,
  backlogWindows,
  causeOf,
  dueRanges,
  hasCause,
  isDueBy,
  loadOpen,
  type OpenRow,
} from "./backlog-windows.ts";
import {
  DELIVERY_STATE,
  deliveryOf,
  type DeliveryRow,
  JOIN_NAMES,
  SELECT_DELIVERY,
  STATUS_IS,
} from "./delivery-state.ts";
import { dueSlice, keySlice, SLICE, subscriptionsWithDue } from "./pending-index.ts";

/** Up to so many subscriptions are walked side by side through the index; for more, all deliveries are scanned. */
const MAX_WALKED = 100;

const ALL: IndexScan = { each: "SELECT rowid AS id FROM delivery WHERE ?", values: [true] };
/** States that may be rare have an index. */
const RARE: Partial<Record<DeliveryStatus, IndexScan>> = {
  failed: {
    each: `SELECT rowid AS id FROM delivery INDEXED BY delivery_failed WHERE state = ${DELIVERY_STATE.failed} AND ?`,
    values: [true],
  },
  filtered: {
    each: `SELECT rowid AS id FROM delivery INDEXED BY delivery_filtered WHERE state = ${DELIVERY_STATE.filtered} AND ?`,
    values: [true],
  },
};

/**
 * Newest first by rowid. No index has every filter in the order of the list, so it goes in steps. Where two indexes lead to the
 * same page and either may be shorter, both are walked.
 */
export function* listDeliveries(sql: Sql, query: DeliverySelection): Steps<readonly Delivery[]> {
  const { event, cause, ...rest } = query;
  if (event !== undefined && !isRowid(event)) return [];
  const state = cause && STATE_OF[cause.name];
  if (cause !== undefined && state !== undefined) {
    const { status = state, cause: _, ...others } = query;
    return status === state ? yield* listDeliveries(sql, { ...others, status }) : [];
  }
  const subscriptions = selectSubscriptions(sql, query);
  if (subscriptions?.length === 0) return [];
  let ranges = yield* idRangesOf(sql, "delivery", rest.fromMs, rest.toMs);
  if (rest.after !== undefined) ranges = rangesAfter(ranges, rest.after, "desc");
  const filter = filterOf(query, subscriptions, ranges);
  if (cause === undefined) return yield* race(plansOf(sql, query, subscriptions, filter));
  const windows = yield* backlogWindows(sql, cause.nowMs, subscriptions);
  const accepts = (row: OpenRow): boolean => causeOf(row, windows) === cause.name;
  return yield* race(plansByCause(sql, { event, name: cause.name, windows }, { ...filter, accepts }));
}

/** Causes that are a state of their own. */
const STATE_OF: Partial<Record<BacklogCause, DeliveryStatus>> = { held: "held", delivering: "delivering" };

type ListPlan = Steps<readonly Delivery[] | undefined>;

function plansOf(
  sql: Sql,
  { event, status }: DeliverySelection,
  subscriptions: readonly number[] | undefined,
  filter: Filter,
): readonly ListPlan[] {
  if (event !== undefined) return [pickOf(sql, deliveriesOfEvent(sql, event), filter)];
  if (status === "delivering") return [pickNewest(sql, leasedIds(sql), filter)];
  const isFew = subscriptions !== undefined && subscriptions.length <= MAX_WALKED;
  const walked = scanNewest(sql, isFew ? ofSubscriptions(subscriptions) : ALL, filter);
  if (status === undefined || status === "delivered") return [walked];
  const rare = RARE[status];
  if (rare !== undefined) {
    const sifted = scanNewest(sql, rare, filter);
    return isFew ? [sifted, walked] : [sifted];
  }
  // Without subscriptions it is `pending` or `waiting`, which only active ones have.
  return [walked, pickOf(sql, pendingIds(sql, subscriptions), filter)];
}

function plansByCause(
  sql: Sql,
  { event, name, windows }: CauseSelection,
  filter: Filter,
): readonly ListPlan[] {
  if (event !== undefined) return [pickOf(sql, deliveriesOfEvent(sql, event), filter)];
  const ids = [...windows.values()].filter((window) => hasCause(window, name)).map(({ id }) => id);
  const walked = scanNewest(sql, ids.length <= MAX_WALKED ? ofSubscriptions(ids) : ALL, filter);
  return ids.length === 0
    ? [pickNewest(sql, [], filter)]
    : [walked, pickOf(sql, idsByCause(sql, name, windows), filter)];
}

interface CauseSelection {
  readonly event: number | undefined;
  readonly name: BacklogCause;
  readonly windows: ReadonlyMap<number, BacklogWindow>;
}

function* pickOf(sql: Sql, gathering: Steps<readonly number[] | undefined>, filter: Filter): ListPlan {
  const ids = yield* gathering;
  return ids === undefined ? undefined : yield* pickNewest(sql, ids, filter);
}

function ofSubscriptions(values: readonly number[]): IndexScan {
  return {
    each: "SELECT rowid AS id FROM delivery INDEXED BY delivery_subscription WHERE subscription_id = ?",
    values,
  };
}

function filterOf(
  { action, status, key, limit }: DeliverySelection,
  subscriptions: readonly number[] | undefined,
  ranges: Filter["ranges"],
): Filter {
  const conditions: string[] = [];
  const values: SqlValue[] = [];
  if (status !== undefined) conditions.push(STATUS_IS[status]);
  if (key !== undefined) {
    conditions.push("d.key IN (SELECT value FROM json_each(?))");
    values.push(JSON.stringify(keysOfText(key)));
  }
  if (subscriptions !== undefined) {
    conditions.push("d.subscription_id IN (SELECT value FROM json_each(?))");
    values.push(JSON.stringify(subscriptions));
  }
  if (action !== undefined) {
    const named = matchOf(action, "a.action");
    conditions.push(named.condition);
    values.push(...named.values);
  }
  return { ranges, conditions, values, limit };
}

/** What follows from the subscription alone. */
const SUBSCRIPTION_IS: Partial<Record<DeliveryStatus, string>> = {
  held: "active = 0 AND deleted_ms IS NULL",
  cancelled: "deleted_ms IS NOT NULL",
};

/** The rowids of the selected subscriptions, deleted ones too; `undefined` for all. */
function selectSubscriptions(
  sql: Sql,
  { subscription, applications, action, status }: DeliverySelection,
): readonly number[] | undefined {
  if (subscription !== undefined && !isRowid(subscription)) return [];
  const state = status === undefined ? undefined : SUBSCRIPTION_IS[status];
  if ((subscription ?? applications ?? action ?? state) === undefined) return undefined;
  const named = action === undefined ? undefined : matchOf(action, "a.action");
  const hasDeliveries = `rowid IN (
    SELECT b.subscription_id FROM binding b JOIN action a ON a.rowid = b.action_id WHERE ${named?.condition})`;
  const rows = sql.rows<{ id: number }>(
    `SELECT rowid AS id FROM subscription
      WHERE ${subscription === undefined ? "? IS NULL" : "rowid = ?"}
        AND ${applications === undefined ? "? IS NULL" : "application IN (SELECT value FROM json_each(?))"}
        AND ${state ?? "TRUE"} AND ${named === undefined ? "TRUE" : hasDeliveries}`,
    subscription ?? null,
    applications === undefined ? null : JSON.stringify(applications),
    ...(named?.values ?? []),
  );
  return rows.map(({ id }) => id);
}

/** Selects deliveries. */
interface Filter {
  /** Rising. */
  readonly ranges: readonly RowidRange[];
  /** Conditions on `d`, the delivery, and `s`, its subscription. */
  readonly conditions: readonly string[];
  readonly values: readonly SqlValue[];
  readonly limit: number;
  /** What else must be true of those that are unfinished and not under way; others are left out then. */
  readonly accepts?: (row: OpenRow) => boolean;
}

/** Rowids in the order of an index. */
interface IndexScan {
  /** A query for each of `values`, which goes on with `AND` and a condition on the rowid; their rows are merged. */
  readonly each: string;
  readonly values: readonly SqlValue[];
}

/** Most candidates of a step; far apart, each takes two microseconds. */
const WINDOW = 512;
const GROWTH = 4;

/** Walks the index from the newest on, a window per step, until enough match the filter. */
function* scanNewest(sql: Sql, { each, values }: IndexScan, filter: Filter): Steps<readonly Delivery[]> {
  const found: Delivery[] = [];
  const one = `${each} AND rowid BETWEEN ? AND ?`;
  const candidates = `SELECT * FROM (${values.map(() => one).join(" UNION ALL ")} ORDER BY 1 DESC LIMIT ?)`;
  let window = Math.min(filter.limit, WINDOW);
  for (const { low, high } of filter.ranges.toReversed()) {
    for (let at = high; at >= low;) {
      const bound = [...values.flatMap((value) => [value, low, at]), window];
      found.push(...loadMatching(sql, candidates, bound, filter, filter.limit - found.length));
      if (found.length >= filter.limit) return found;
      const passed = sql.first<{ lowest: number | null; count: number }>(
        `SELECT min(id) AS lowest, count(*) AS count FROM (${candidates})`,
        ...bound,
      );
      at = passed === undefined || passed.lowest === null || passed.count < window ? -1 : passed.lowest - 1;
      window = Math.min(window * GROWTH, WINDOW);
      yield;
    }
  }
  return found;
}

/** The newest of these that match the filter, in whatever order they come. */
function* pickNewest(sql: Sql, ids: readonly number[], filter: Filter): Steps<readonly Delivery[]> {
  // A typed array sorts four times as fast as an array with a comparator.
  const sorted = Float64Array.from(ids).toSorted().toReversed();
  const found: Delivery[] = [];
  for (let at = 0; at < sorted.length && found.length < filter.limit; at += WINDOW) {
    // One may have been found twice, as it can move in the index between two steps.
    const some = [...sorted.subarray(at, at + WINDOW)].filter(
      (id, index) =>
        id !== sorted[at + index - 1] && filter.ranges.some(({ low, high }) => id >= low && id <= high),
    );
    const candidates = "SELECT value AS id FROM json_each(?)";
    found.push(...loadMatching(sql, candidates, [JSON.stringify(some)], filter, filter.limit - found.length));
    yield;
  }
  return found;
}

/** The first `max` candidates that match the filter now, in the candidates' order. */
function loadMatching(
  sql: Sql,
  candidates: string,
  bound: readonly SqlValue[],
  { accepts, ...filter }: Filter,
  max: number,
): readonly Delivery[] {
  if (accepts !== undefined) {
    const ids = loadOpen(sql, candidates, bound).filter(accepts);
    const accepted = JSON.stringify(ids.map(({ id }) => id));
    return loadMatching(sql, "SELECT value AS id FROM json_each(?)", [accepted], filter, max);
  }
  const { conditions, values } = filter;
  const rows = sql.rows<DeliveryRow>(
    `${SELECT_DELIVERY} FROM (${candidates}) AS page CROSS JOIN delivery AS d ON d.rowid = page.id ${JOIN_NAMES}
      WHERE ${["TRUE", ...conditions].join(" AND ")} LIMIT ?`,
    ...bound,
    ...values,
    max,
  );
  return rows.map(deliveryOf);
}

/** The rowids of the deliveries with a cause, in no order. `undefined` when there are too many. */
function* idsByCause(
  sql: Sql,
  cause: BacklogCause,
  windows: CauseSelection["windows"],
): Steps<number[] | undefined> {
  const ids: number[] = [];
  for (const window of windows.values()) {
    if (!hasCause(window, cause)) continue;
    for (const id of [window.headId, window.blockerId]) if (id !== null) ids.push(id);
    for (const { from, toMs } of dueRanges(window, cause)) {
      for (let slice = dueSlice(sql, window.id, from); ; slice = dueSlice(sql, window.id, slice.at(-1))) {
        const within = slice.filter((row) => isDueBy(row, toMs));
        for (const { id } of within) ids.push(id);
        yield;
        if (within.length < SLICE) break;
        if (ids.length > MAX_PENDING_IDS) return undefined;
      }
    }
    if (!window.isKeyed || (cause !== "waiting" && cause !== "blocked")) continue;
    for (let slice = keySlice(sql, window.id); ; slice = keySlice(sql, window.id, slice.at(-1))) {
      for (const { state, id } of slice) if (state === DELIVERY_STATE.behind) ids.push(id);
      yield;
      if (slice.length < SLICE) break;
      if (ids.length > MAX_PENDING_IDS) return undefined;
    }
  }
  return ids;
}

/** More would take long to sort, and a walk from the newest on finds some soon. */
const MAX_PENDING_IDS = 50_000;

/**
 * The rowids of all pending deliveries of these subscriptions, or of all active ones, in no order. `undefined` when there are too
 * many.
 */
function* pendingIds(sql: Sql, subscriptions: readonly number[] | undefined): Steps<number[] | undefined> {
  const ids: number[] = [];
  for (const id of subscriptions ?? (yield* activeWithDue(sql))) {
    for (let slice = dueSlice(sql, id); ; slice = dueSlice(sql, id, slice.at(-1))) {
      for (const each of slice) ids.push(each.id);
      yield;
      if (slice.length < SLICE) break;
      if (ids.length > MAX_PENDING_IDS) return undefined;
    }
    for (let slice = keySlice(sql, id); ; slice = keySlice(sql, id, slice.at(-1))) {
      for (const each of slice) if (each.state === DELIVERY_STATE.behind) ids.push(each.id);
      yield;
      if (slice.length < SLICE) break;
      if (ids.length > MAX_PENDING_IDS) return undefined;
    }
  }
  return ids;
}

/** How many deliveries of a subscription are pending, and not under way at the start. */
export function* countPending(sql: Sql, subscription: number): Steps<number> {
  const leased = new Set(leasedIds(sql));
  let count = 0;
  for (let slice = dueSlice(sql, subscription); ; slice = dueSlice(sql, subscription, slice.at(-1))) {
    for (const { id } of slice) if (!leased.has(id)) count += 1;
    if (slice.length < SLICE) break;
    yield;
  }
  for (let slice = keySlice(sql, subscription); ; slice = keySlice(sql, subscription, slice.at(-1))) {
    for (const { state } of slice) if (state === DELIVERY_STATE.behind) count += 1;
    if (slice.length < SLICE) return count;
    yield;
  }
}

function* activeWithDue(sql: Sql): Steps<readonly number[]> {
  const found = yield* subscriptionsWithDue(sql);
  return found.flatMap(({ id, isActive, isDeleted }) => (isActive && !isDeleted ? [id] : []));
}

/** The rowids of deliveries that are under way. */
function leasedIds(sql: Sql): number[] {
  return sql.rows<{ id: number }>("SELECT delivery_id AS id FROM lease").map(({ id }) => id);
}

/** The rowids of an event's deliveries, which are as many as its action had subscriptions. */
function* deliveriesOfEvent(sql: Sql, event: number): Steps<number[]> {
  const ids: number[] = [];
  for (let last = 0; ;) {
    const slice = sql.rows<{ subscription_id: number; id: number }>(
      `SELECT subscription_id, rowid AS id FROM delivery INDEXED BY delivery_event
        WHERE event_id = ? AND subscription_id > ? ORDER BY subscription_id LIMIT ?`,
      event,
      last,
      SLICE,
    );
    for (const { id } of slice) ids.push(id);
    const end = slice.at(-1);
    if (end === undefined || slice.length < SLICE) return ids;
    last = end.subscription_id;
    yield;
  }
}
