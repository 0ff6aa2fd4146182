import type { Delivery, DeliveryStatus } from "../../../domain/delivery.ts";
import { keysOfText } from "../../../domain/order-key.ts";
import type { BacklogCause } from "../../../domain/stats/stats.ts";
import type { DeliverySelection } from "../../queue.ts";
import { matchOf } from "../catalog/matching.ts";
import { idRangesOf, rangesAfter } from "../events/timeline.ts";
import type { ReadPart } from "../operation.ts";
import { type Sql, type SqlValue, walkedBy } from "../sql.ts";
import { type DeliveryFilter, filterByCause, selectSubscriptions } from "./backlog.ts";
import {
  DELIVERY_STATE,
  deliveryOf,
  type DeliveryRow,
  JOIN_NAMES,
  SELECT_DELIVERY,
  STATUS,
  UNFINISHED_STATES,
  WAIT_END,
} from "./delivery-state.ts";

// Deliveries are listed newest first by rowid. No index has every filter in the order of the list. So an index leads to
// candidates, newest first: that of what is rare, or of the subscriptions. Where little is unfinished, that is gathered and
// sorted.

/** How many candidates one call looks at; whoever wants a whole page goes on with the rest. */
const EXTENT = {
  /** Candidates that are looked at, each for one or two microseconds, in which other reads wait. */
  lookedAt: 8_000,
  /**
   * Where no more than so many are unfinished, they are gathered and sorted, some 0.1 µs for each; ten times as many once the newest
   * candidates were looked at and were not enough.
   */
  gathered: 20_000,
};
/** Up to so many subscriptions are walked side by side through their index; for more, all deliveries are. */
const MAX_WALKED = 100;

type DeliveryPart = ReadPart<Delivery, DeliverySelection>;

const NONE: DeliveryPart = { items: [] };

/** Causes that are a status of their own. */
const STATUS_OF: Partial<Record<BacklogCause, DeliveryStatus>> = {
  held: "held",
  delivering: "delivering",
};

/** Lists the newest of the selected deliveries, of those that one call looks at. */
export async function listDeliveries(
  sql: Sql,
  query: DeliverySelection,
  extent = EXTENT,
): Promise<DeliveryPart> {
  const ofCause = query.cause && STATUS_OF[query.cause.name];
  const status = query.status ?? ofCause;
  if (ofCause !== undefined && status !== ofCause) return NONE;
  const filter = await filterOf(sql, query, status);
  if (filter.subscriptions?.length === 0) return NONE;
  const all = await idRangesOf(sql, "delivery", query.fromMs, query.toMs);
  const ranges = query.after === undefined ? all : rangesAfter(all, query.after, "desc");
  const range = ranges.at(-1);
  if (range === undefined) return NONE;

  const source = await sourceOf(sql, query, status, filter, extent);
  const candidates = `(${source.text} ORDER BY 1 DESC LIMIT ?) AS page`;
  const bound = [range.low, range.high, ...source.values, extent.lookedAt];
  const rows = await sql.rows<DeliveryRow>(
    `${SELECT_DELIVERY} FROM ${candidates} CROSS JOIN delivery AS d ON d.rowid = page.id ${JOIN_NAMES}
      WHERE ${filter.conditions.join(" AND ")} ${walkedBy("page.id DESC")} LIMIT ?`,
    ...bound,
    ...filter.values,
    query.limit,
  );
  const items = rows.map(deliveryOf);
  if (rows.length === query.limit) return { items };
  const cut = await sql.first<{ lowest: number }>(
    `SELECT min(id) AS lowest FROM ${candidates} HAVING count(*) = ?`,
    ...bound,
    extent.lookedAt,
  );
  // All deliveries from this rowid on were looked at, and the older ones were not.
  const after = cut?.lowest ?? (ranges.length > 1 ? range.low : undefined);
  return after === undefined
    ? { items }
    : { items, rest: { ...query, after, limit: query.limit - items.length } };
}

/** Conditions of statuses that follow from the subscription, or of what is unfinished and sent. */
const IS_SENT = "active = 1 AND deleted_ms IS NULL";
const SUBSCRIPTION_IS: Partial<Record<DeliveryStatus, string>> = {
  pending: IS_SENT,
  waiting: IS_SENT,
  held: "active = 0 AND deleted_ms IS NULL",
  cancelled: "deleted_ms IS NOT NULL",
};

async function filterOf(
  sql: Sql,
  query: DeliverySelection,
  status: DeliveryStatus | undefined,
): Promise<DeliveryFilter> {
  const { action, cause, key } = query;
  const selected = await selectSubscriptions(sql, query, status && SUBSCRIPTION_IS[status]);
  const ofCause =
    cause === undefined || STATUS_OF[cause.name] !== undefined
      ? undefined
      : await filterByCause(sql, cause.name, cause.nowMs, selected);
  const subscriptions = ofCause === undefined ? selected : ofCause.subscriptions;
  const named = matchOf(action, "a.action");
  const conditions = [...(ofCause?.conditions ?? []), named.condition];
  const values = [...(ofCause?.values ?? []), ...named.values];
  if (status !== undefined) conditions.push(`${STATUS} = '${status}'`);
  // What is under way of a deleted subscription is in no backlog.
  if (cause?.name === "delivering") conditions.push("s.deleted_ms IS NULL");
  if (key !== undefined) {
    conditions.push("d.key IN list(?: id bigint)");
    values.push(keysOfText(key));
  }
  if (subscriptions !== undefined) {
    conditions.push("d.subscription_id IN list(?: id bigint)");
    values.push(subscriptions);
  }
  return { subscriptions, conditions, values };
}

/** SQL that leads to candidates: the rowids of deliveries, of those from `?1` to `?2`, with its other values. */
interface CandidateSource {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

function rowids(from: string, condition = "TRUE"): string {
  return `SELECT delivery.rowid AS id FROM ${from} WHERE delivery.rowid BETWEEN ?1 AND ?2 AND ${condition}`;
}

const OF_EVENT = rowids("delivery INDEXED BY delivery_event", "delivery.event_id = ?");
const OF_SUBSCRIPTION = rowids("delivery INDEXED BY delivery_subscription", "delivery.subscription_id = ?");
/** Statuses that are rare, each with an index of its own. */
const RARE: Partial<Record<DeliveryStatus, string>> = {
  delivering: rowids("lease CROSS JOIN delivery ON delivery.rowid = lease.delivery_id"),
  failed: rowids("delivery INDEXED BY delivery_failed", `delivery.state = ${DELIVERY_STATE.failed}`),
  filtered: rowids("delivery INDEXED BY delivery_filtered", `delivery.state = ${DELIVERY_STATE.filtered}`),
};
// What is pending of subscriptions, and what is behind others of its key. Neither is in the order of the list.
const OF_SUBSCRIPTIONS = "delivery.subscription_id IN list(?3: id bigint)";
const PENDING = rowids(
  "delivery INDEXED BY delivery_due",
  `${OF_SUBSCRIPTIONS} AND delivery.due_ms IS NOT NULL`,
);
/** Goes on with `PENDING`: what is to be sent after a time, or waits with its subscription. Most may be due. */
const LATER = `AND (delivery.due_ms > ?4 OR delivery.subscription_id IN (SELECT s.rowid FROM subscription AS s WHERE ${WAIT_END} > ?4))`;
const PENDING_AGAIN = rowids(
  "delivery INDEXED BY delivery_waiting_event",
  `${OF_SUBSCRIPTIONS} AND delivery.failures > 0 AND delivery.due_ms IS NOT NULL`,
);
const BEHIND = rowids(
  "delivery INDEXED BY delivery_key",
  `${OF_SUBSCRIPTIONS} AND delivery.key IS NOT NULL AND delivery.state IN ${UNFINISHED_STATES}
    AND delivery.state = ${DELIVERY_STATE.behind}`,
);

async function sourceOf(
  sql: Sql,
  { event, cause, after }: DeliverySelection,
  status: DeliveryStatus | undefined,
  { subscriptions }: DeliveryFilter,
  { gathered }: typeof EXTENT,
): Promise<CandidateSource> {
  if (event !== undefined) return { text: OF_EVENT, values: [event] };
  const rare = status && RARE[status];
  if (rare !== undefined) return { text: rare, values: [] };
  if (cause !== undefined || (status !== undefined && status !== "delivered")) {
    const isLater = cause?.name === "waiting";
    const pending = isLater ? `${PENDING} ${LATER}` : status === "waiting" ? PENDING_AGAIN : PENDING;
    const values = [subscriptions, ...(isLater ? [cause.nowMs] : [])];
    const unfinished = { text: `${pending} UNION ALL ${BEHIND}`, values };
    if (await isWithin(sql, unfinished, after === undefined ? gathered : 10 * gathered)) return unfinished;
  }
  const isFew = subscriptions !== undefined && subscriptions.length <= MAX_WALKED;
  if (!isFew) return { text: rowids("delivery"), values: [] };
  return { text: subscriptions.map(() => OF_SUBSCRIPTION).join(" UNION ALL "), values: subscriptions };
}

/** Whether a source leads to no more candidates than that. */
async function isWithin(sql: Sql, { text, values }: CandidateSource, most: number): Promise<boolean> {
  const few = await sql.value<number>(
    `SELECT count(*) FROM (SELECT 1 FROM (${text}) AS each LIMIT ?) AS few`,
    1,
    Number.MAX_SAFE_INTEGER,
    ...values,
    most + 1,
  );
  return few <= most;
}
