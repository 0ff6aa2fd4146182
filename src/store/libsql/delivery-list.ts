import type { Delivery, DeliveryStatus } from "../../domain/delivery.ts";
import type { DeliverySelection } from "../deliveries.ts";
import { deliveriesOfEvent, gatherDue, leasedIds } from "./delivery-ids.ts";
import { STATUS_IS } from "./delivery-row.ts";
import { type Filter, pickNewest, type Source, walkDown } from "./delivery-walk.ts";
import { race, type Steps } from "./read-steps.ts";
import type { Sql, SqlValue } from "./sql.ts";
import { isRowid } from "./text.ts";
import { beyond, rowidRanges } from "./time-range.ts";

/** Up to this many subscriptions are walked side by side through the index; past it, all deliveries are sifted. */
const WALKED_SUBSCRIPTIONS = 100;

/** The values are taken by the condition that each begins with. */
const ALL: Source = { each: "SELECT rowid AS id FROM delivery WHERE ?", values: [true] };
/** Those of an ending that may be rare among all the others. */
const RARE: Partial<Record<DeliveryStatus, Source>> = {
  failed: {
    each: "SELECT rowid AS id FROM delivery INDEXED BY delivery_failed WHERE state = 3 AND ?",
    values: [true],
  },
  filtered: {
    each: "SELECT rowid AS id FROM delivery INDEXED BY delivery_filtered WHERE state = 4 AND ?",
    values: [true],
  },
};

/**
 * Newest first by rowid. No index has every filter in the order of the listing, so what may take long goes in steps; where
 * two indexes lead to the same page and either may be the shorter way, both are followed.
 */
export function* listDeliveries(sql: Sql, query: DeliverySelection): Steps<readonly Delivery[]> {
  if (query.event !== undefined && !isRowid(query.event)) return [];
  const subscriptions = selectSubscriptions(sql, query);
  if (subscriptions?.length === 0) return [];
  let ranges = yield* rowidRanges(sql, "delivery", query.fromMs, query.toMs);
  if (query.after !== undefined) ranges = beyond(ranges, query.after, "desc");
  const filter = filterOf(query, subscriptions, ranges);
  return yield* race(waysOf(sql, query, subscriptions, filter));
}

type Way = Steps<readonly Delivery[] | undefined>;

function waysOf(
  sql: Sql,
  { event, status }: DeliverySelection,
  subscriptions: readonly number[] | undefined,
  filter: Filter,
): readonly Way[] {
  if (event !== undefined) return [picked(sql, deliveriesOfEvent(sql, event), filter)];
  if (status === "delivering") return [pickNewest(sql, leasedIds(sql), filter)];
  const isFew = subscriptions !== undefined && subscriptions.length <= WALKED_SUBSCRIPTIONS;
  const walked = walkDown(sql, isFew ? ofSubscriptions(subscriptions) : ALL, filter);
  if (status === undefined || status === "delivered") return [walked];
  const rare = RARE[status];
  if (rare !== undefined) {
    const sifted = walkDown(sql, rare, filter);
    return isFew ? [sifted, walked] : [sifted];
  }
  // Without a choice of subscriptions it is `pending` or `waiting`, which only active ones have.
  return [walked, picked(sql, gatherDue(sql, subscriptions), filter)];
}

function* picked(sql: Sql, gathering: Steps<readonly number[] | undefined>, filter: Filter): Way {
  const ids = yield* gathering;
  return ids === undefined ? undefined : yield* pickNewest(sql, ids, filter);
}

function ofSubscriptions(values: readonly number[]): Source {
  return {
    each: "SELECT rowid AS id FROM delivery INDEXED BY delivery_subscription WHERE subscription_id = ?",
    values,
  };
}

function filterOf(
  { action, status, limit }: DeliverySelection,
  subscriptions: readonly number[] | undefined,
  ranges: Filter["ranges"],
): Filter {
  const conditions: string[] = [];
  const values: SqlValue[] = [];
  if (status !== undefined) conditions.push(STATUS_IS[status]);
  if (subscriptions !== undefined) {
    conditions.push("d.subscription_id IN (SELECT value FROM json_each(?))");
    values.push(JSON.stringify(subscriptions));
  }
  if (action !== undefined) {
    conditions.push("a.action = ?");
    values.push(action);
  }
  return { ranges, conditions, values, limit };
}

/** What follows from the subscription alone. */
const SUBSCRIPTION_IS: Partial<Record<DeliveryStatus, string>> = {
  held: "active = 0 AND deleted_ms IS NULL",
  cancelled: "deleted_ms IS NOT NULL",
};

/** The rowids of the subscriptions asked for, deleted ones too; `undefined` for all. */
function selectSubscriptions(
  sql: Sql,
  { subscription, applications, action, status }: DeliverySelection,
): readonly number[] | undefined {
  if (subscription !== undefined && !isRowid(subscription)) return [];
  const state = status === undefined ? undefined : SUBSCRIPTION_IS[status];
  if ((subscription ?? applications ?? action ?? state) === undefined) return undefined;
  const rows = sql.rows<{ id: number }>(
    `SELECT rowid AS id FROM subscription
      WHERE ${subscription === undefined ? "?1 IS NULL" : "rowid = ?1"}
        AND (?2 IS NULL OR application IN (SELECT value FROM json_each(?2)))
        AND (?3 IS NULL OR rowid IN (
          SELECT b.subscription_id FROM binding b JOIN action a ON a.rowid = b.action_id WHERE a.action = ?3))
        AND ${state ?? "TRUE"}`,
    subscription ?? null,
    applications === undefined ? null : JSON.stringify(applications),
    action ?? null,
  );
  return rows.map(({ id }) => id);
}
