import type { Delivery, DeliveryStatus } from "../../../domain/delivery.ts";
import { rangesAfter, type RowidRange, idRangesOf } from "../events/timeline.ts";
import type { DeliverySelection } from "../../queue.ts";
import { keysOfText } from "../../../domain/order-key.ts";
import type { BacklogCause } from "../../../domain/stats/stats.ts";
import { matchOf } from "../catalog/matching.ts";
import { isRowid, type Sql, type SqlValue } from "../thread/sql.ts";
import {
  type BacklogWindow,
  backlogWindows,
  causeOf,
  type DueRange,
  hasCause,
  isInRange,
  loadOpen,
  type OpenRow,
  pendingRange,
  rangesOf,
} from "./backlog-windows.ts";
import {
  DELIVERY_STATE,
  deliveryOf,
  type DeliveryRow,
  JOIN_NAMES,
  SELECT_DELIVERY,
  STATUS_IS,
  UNFINISHED_STATES,
} from "./delivery-state.ts";
import { subscriptionsWithDue } from "./pending-index.ts";

// Newest first by rowid. No index has every filter in the order of the list, so several lead to the same page: the newest are
// looked at first, and where they are not enough, the index with the fewest candidates. One call looks at so many that others
// need not wait for it; whoever wants a whole page goes on with the rest.

/** So many newest candidates are looked at before anything is compared. */
const MAX_NEWEST = 1_000;
/** Candidates of one call, each of which takes one or two microseconds. */
const MAX_LOOKED_AT = 8_000;
/** Candidates are counted up to this to find the shortest way; each takes some ten nanoseconds. */
const MAX_COMPARED = 50_000;
/** Up to so many subscriptions are walked side by side through the index; for more, all deliveries are scanned. */
const MAX_WALKED = 100;

/** What one call has found of a list. */
export interface DeliveryPart {
  readonly deliveries: readonly Delivery[];
  /** All from this rowid on were looked at, and the older ones were not; absent when the list is complete. */
  readonly after?: number;
}

/** How many candidates one call looks at: of the newest, and then of the index with the fewest. */
interface Extent {
  readonly newest: number;
  readonly further: number;
}

/** The newest of the selected deliveries, of those that one call looks at. */
export function listDeliveries(
  sql: Sql,
  query: DeliverySelection,
  extent: Extent = { newest: MAX_NEWEST, further: MAX_LOOKED_AT },
): DeliveryPart {
  const { event, cause } = query;
  if (event !== undefined && !isRowid(event)) return NONE;
  const state = cause && STATE_OF[cause.name];
  if (cause !== undefined && state !== undefined) {
    const { status = state, cause: _, ...others } = query;
    return status === state ? listDeliveries(sql, { ...others, status }, extent) : NONE;
  }
  const subscriptions = selectSubscriptions(sql, query);
  if (subscriptions?.length === 0) return NONE;
  let ranges = idRangesOf(sql, "delivery", query.fromMs, query.toMs);
  if (query.after !== undefined) ranges = rangesAfter(ranges, query.after, "desc");
  const filter = filterOf(query, subscriptions, ranges);
  if (cause === undefined) return firstOf(sql, sourcesOf(sql, query, subscriptions), filter, extent);
  const windows = backlogWindows(sql, cause.nowMs, subscriptions && new Set(subscriptions));
  const accepts = (row: OpenRow): boolean => causeOf(row, windows) === cause.name;
  const sources = event === undefined ? sourcesByCause([...windows.values()], cause.name) : [ofEvent(event)];
  return firstOf(sql, sources, { ...filter, accepts }, extent);
}

const NONE: DeliveryPart = { deliveries: [] };

/** Causes that are a state of their own. */
const STATE_OF: Partial<Record<BacklogCause, DeliveryStatus>> = { held: "held", delivering: "delivering" };

/** A query of the rowids of deliveries, which goes on with `AND` and a condition on `delivery.rowid`, and its values. */
interface RowidQuery {
  readonly each: string;
  readonly values: readonly SqlValue[];
}

/** Leads to candidates; the rows of its queries are merged. */
type Source = readonly RowidQuery[];

const ALL: Source = [{ each: "SELECT delivery.rowid AS id FROM delivery WHERE TRUE", values: [] }];

/** States that may be rare have an index. */
const RARE: Partial<Record<DeliveryStatus, Source>> = {
  failed: [ofState("delivery_failed", DELIVERY_STATE.failed)],
  filtered: [ofState("delivery_filtered", DELIVERY_STATE.filtered)],
};

function ofState(index: string, state: number): RowidQuery {
  return {
    each: `SELECT delivery.rowid AS id FROM delivery INDEXED BY ${index} WHERE delivery.state = ${state}`,
    values: [],
  };
}

const LEASED: Source = [
  {
    each: "SELECT delivery.rowid AS id FROM lease CROSS JOIN delivery ON delivery.rowid = lease.delivery_id WHERE TRUE",
    values: [],
  },
];

function ofSubscriptions(ids: readonly number[]): Source {
  const each =
    "SELECT delivery.rowid AS id FROM delivery INDEXED BY delivery_subscription WHERE delivery.subscription_id = ?";
  return ids.map((id) => ({ each, values: [id] }));
}

function ofEvent(id: number): Source {
  return [
    {
      each: "SELECT delivery.rowid AS id FROM delivery INDEXED BY delivery_event WHERE delivery.event_id = ?",
      values: [id],
    },
  ];
}

/** What is pending in these ranges of the index, which is not in the order of the list. */
function pendingOf(ranges: readonly DueRange[]): Source {
  const each = `SELECT delivery.rowid AS id FROM json_each(?) AS p CROSS JOIN delivery INDEXED BY delivery_due ON ${isInRange("p.value")} WHERE TRUE`;
  return ranges.length === 0 ? [] : [{ each, values: [JSON.stringify(ranges)] }];
}

/** What is behind others of their keys, of these subscriptions. */
function behindOf(subscriptions: readonly number[]): Source {
  const each = `SELECT delivery.rowid AS id FROM json_each(?) AS p CROSS JOIN delivery INDEXED BY delivery_key
      ON delivery.subscription_id = p.value AND delivery.key IS NOT NULL AND delivery.state IN ${UNFINISHED_STATES}
    WHERE delivery.state = ${DELIVERY_STATE.behind}`;
  return subscriptions.length === 0 ? [] : [{ each, values: [JSON.stringify(subscriptions)] }];
}

/** Where the candidates are: the first source is the one whose newest are looked at first. */
function sourcesOf(
  sql: Sql,
  { event, status }: DeliverySelection,
  subscriptions: readonly number[] | undefined,
): readonly Source[] {
  if (event !== undefined) return [ofEvent(event)];
  if (status === "delivering") return [LEASED];
  const isFew = subscriptions !== undefined && subscriptions.length <= MAX_WALKED;
  const inOrder = isFew ? ofSubscriptions(subscriptions) : ALL;
  if (status === undefined || status === "delivered") return [inOrder];
  const rare = RARE[status];
  if (rare !== undefined) return isFew ? [inOrder, rare] : [rare];
  // Without subscriptions it is `pending` or `waiting`, which only active ones have.
  const ids = subscriptions ?? activeWithDue(sql);
  return [inOrder, [...pendingOf(ids.map(pendingRange)), ...behindOf(ids)]];
}

function sourcesByCause(windows: readonly BacklogWindow[], cause: BacklogCause): readonly Source[] {
  const having = windows.filter((window) => hasCause(window, cause));
  const ids = having.map(({ id }) => id);
  const inOrder = ids.length <= MAX_WALKED ? ofSubscriptions(ids) : ALL;
  return [
    inOrder,
    [
      ...pendingOf(having.flatMap((window) => rangesOf(window, cause))),
      ...behindOf(having.flatMap(({ id, isKeyed }) => (isKeyed ? [id] : []))),
    ],
  ];
}

function activeWithDue(sql: Sql): readonly number[] {
  return subscriptionsWithDue(sql).flatMap(({ id, isActive, isDeleted }) =>
    isActive && !isDeleted ? [id] : [],
  );
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

/** The first that match: the newest of the first source, and then those of the source that has the fewest. */
function firstOf(
  sql: Sql,
  sources: readonly Source[],
  filter: Filter,
  { newest: most, further }: Extent,
): DeliveryPart {
  const newest = lookThrough(sql, sources[0]!, filter, most);
  if (newest.after === undefined) return newest;
  const rest = {
    ...filter,
    ranges: rangesAfter(filter.ranges, newest.after, "desc"),
    limit: filter.limit - newest.deliveries.length,
  };
  const { deliveries, ...end } = lookThrough(sql, shortest(sql, sources), rest, further);
  return { deliveries: [...newest.deliveries, ...deliveries], ...end };
}

function shortest(sql: Sql, sources: readonly Source[]): Source {
  if (sources.length === 1) return sources[0]!;
  const counts = sources.map((source) => {
    if (source === ALL) return MAX_COMPARED;
    const { each, values } = joined(source, "");
    return sql.value<number>(
      `SELECT count(*) FROM (SELECT 1 FROM (${each}) LIMIT ?)`,
      ...values,
      MAX_COMPARED,
    );
  });
  return sources[counts.indexOf(Math.min(...counts))]!;
}

function joined(source: Source, condition: string, ...bound: readonly SqlValue[]): RowidQuery {
  if (source.length === 0) return { each: "SELECT NULL AS id WHERE FALSE", values: [] };
  return {
    each: source.map(({ each }) => `${each} ${condition}`).join(" UNION ALL "),
    values: source.flatMap(({ values }) => [...values, ...bound]),
  };
}

/** Looks at so many candidates, newest first, until enough match the filter. */
function lookThrough(sql: Sql, source: Source, filter: Filter, most: number): DeliveryPart {
  const deliveries: Delivery[] = [];
  let left = most;
  for (const { low, high } of filter.ranges.toReversed()) {
    const { each, values } = joined(source, "AND delivery.rowid BETWEEN ? AND ?", low, high);
    const candidates = `SELECT id FROM (${each} ORDER BY 1 DESC LIMIT ?)`;
    const bound = [...values, left];
    deliveries.push(...loadMatching(sql, candidates, bound, filter, filter.limit - deliveries.length));
    if (deliveries.length >= filter.limit) return { deliveries };
    const { count, lowest } = sql.first<{ count: number; lowest: number | null }>(
      `SELECT count(*) AS count, min(id) AS lowest FROM (${candidates})`,
      ...bound,
    )!;
    left -= count;
    if (left <= 0 && lowest !== null) return { deliveries, after: lowest };
  }
  return { deliveries };
}

/** The first `max` candidates that match the filter, in the candidates' order. */
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

/** How many deliveries of a subscription are pending, and not under way. */
export function countPending(sql: Sql, subscription: number): number {
  return sql.value<number>(
    `SELECT (SELECT count(*) FROM delivery INDEXED BY delivery_due WHERE subscription_id = ?1 AND due_ms IS NOT NULL)
        + (SELECT count(*) FROM delivery INDEXED BY delivery_key
          WHERE subscription_id = ?1 AND key IS NOT NULL AND state IN ${UNFINISHED_STATES} AND state = ${DELIVERY_STATE.behind})
        - (SELECT count(*) FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id
          WHERE d.subscription_id = ?1 AND d.due_ms IS NOT NULL)`,
    subscription,
  );
}
