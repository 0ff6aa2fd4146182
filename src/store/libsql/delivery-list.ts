import type { Delivery, DeliveryStatus } from "../../domain/delivery.ts";
import type { DeliverySelection } from "../store.ts";
import { deliveryOf, type DeliveryRow, JOIN_NAMES, SELECT_DELIVERY, STATUS_IS } from "./delivery-row.ts";
import type { Sql, SqlValue } from "./sql.ts";
import { isRowid } from "./text.ts";
import { rowidRange } from "./time-range.ts";

/** Up to this many subscriptions are walked side by side through the index; past it, all deliveries are walked and sifted. */
const WALKED_SUBSCRIPTIONS = 100;

/**
 * The index that leads to the few deliveries of a status. `failed` comes in the order of the listing; the others are
 * what is unfinished, and are sorted. `delivered` is the common case and has none.
 */
const INDEX_OF: Readonly<Record<DeliveryStatus, string | undefined>> = {
  pending: "delivery_due",
  waiting: "delivery_due",
  held: "delivery_due",
  cancelled: "delivery_due",
  delivering: "delivery_leased",
  failed: "delivery_failed",
  delivered: undefined,
};

interface Conditions {
  readonly texts: string[];
  readonly values: SqlValue[];
}

/** Newest first by rowid. */
export function listDeliveries(sql: Sql, query: DeliverySelection): readonly Delivery[] {
  if (query.event !== undefined && !isRowid(query.event)) return [];
  const subscriptions = selectSubscriptions(sql, query);
  const range = rowidRange(sql, "delivery", query.fromMs, query.toMs);
  if (subscriptions?.length === 0 || range === undefined) return [];

  const high = query.after === undefined ? range.high : Math.min(range.high, query.after - 1);
  const within: Conditions = { texts: ["d.rowid BETWEEN ? AND ?"], values: [range.low, high] };
  if (range.mixed) {
    within.texts.push("d.created_ms >= ? AND d.created_ms < ?");
    within.values.push(query.fromMs ?? 0, query.toMs ?? Number.MAX_SAFE_INTEGER);
  }
  if (query.status !== undefined) within.texts.push(STATUS_IS[query.status]);
  if (query.action !== undefined) {
    within.texts.push(
      "(SELECT action_id FROM event WHERE rowid = d.event_id) = (SELECT rowid FROM action WHERE action = ?)",
    );
    within.values.push(query.action);
  }

  const { text, values } = walk(query, subscriptions, within);
  const rows = sql.rows<DeliveryRow>(
    `WITH page (id) AS (${text} ORDER BY 1 DESC LIMIT ?)
      ${SELECT_DELIVERY} FROM page CROSS JOIN delivery AS d ON d.rowid = page.id ${JOIN_NAMES}`,
    ...values,
    query.limit,
  );
  return rows.toSorted((a, b) => b.id - a.id).map(deliveryOf);
}

/** One query for the rowids, led by whatever narrows most. */
function walk(
  query: DeliverySelection,
  subscriptions: readonly number[] | undefined,
  within: Conditions,
): { text: string; values: readonly SqlValue[] } {
  const { event, status } = query;
  const { texts, values } = within;

  const few = subscriptions !== undefined && subscriptions.length <= WALKED_SUBSCRIPTIONS;
  const index = event === undefined && status !== undefined ? INDEX_OF[status] : undefined;
  if (few && event === undefined && index === undefined) {
    const one = select("INDEXED BY delivery_subscription", ["d.subscription_id = ?", ...texts]);
    return {
      text: subscriptions.map(() => one).join(" UNION ALL "),
      values: subscriptions.flatMap((id) => [id, ...values]),
    };
  }
  const among =
    subscriptions === undefined
      ? { texts: [], values: [] }
      : {
          texts: ["d.subscription_id IN (SELECT value FROM json_each(?))"],
          values: [JSON.stringify(subscriptions)],
        };
  if (event !== undefined) {
    return {
      text: select("INDEXED BY delivery_event", ["d.event_id = ?", ...among.texts, ...texts]),
      values: [event, ...among.values, ...values],
    };
  }
  return {
    text: select(index === undefined ? "NOT INDEXED" : `INDEXED BY ${index}`, [...among.texts, ...texts]),
    values: [...among.values, ...values],
  };
}

function select(index: string, conditions: readonly string[]): string {
  return `SELECT d.rowid AS id FROM delivery AS d ${index}
    CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
    WHERE ${conditions.join(" AND ")}`;
}

/** The rowids of the subscriptions asked for, deleted ones too; `undefined` for all. */
function selectSubscriptions(
  sql: Sql,
  { subscription, applications, action }: DeliverySelection,
): readonly number[] | undefined {
  if (subscription !== undefined && !isRowid(subscription)) return [];
  if (subscription === undefined && applications === undefined && action === undefined) return undefined;
  const rows = sql.rows<{ id: number }>(
    `SELECT rowid AS id FROM subscription
      WHERE (?1 IS NULL OR rowid = ?1)
        AND (?2 IS NULL OR application IN (SELECT value FROM json_each(?2)))
        AND (?3 IS NULL OR rowid IN (
          SELECT b.subscription_id FROM binding b JOIN action a ON a.rowid = b.action_id WHERE a.action = ?3))`,
    subscription ?? null,
    applications === undefined ? null : JSON.stringify(applications),
    action ?? null,
  );
  return rows.map(({ id }) => id);
}
