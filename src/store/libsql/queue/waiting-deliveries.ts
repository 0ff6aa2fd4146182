import type { Claimable, WaitingDelivery } from "../../rules/fair-share.ts";
import type { Sql } from "../thread/sql.ts";
import { NORMAL, REQUESTED } from "./delivery-state.ts";

const NOT_LEASED = "NOT EXISTS (SELECT 1 FROM lease AS l WHERE l.delivery_id = w.rowid)";
const BY_DUE = `SELECT w.priority, w.due_ms AS ms, w.rowid FROM delivery AS w INDEXED BY delivery_due
  WHERE w.subscription_id = requested.value AND w.due_ms IS NOT NULL AND ${NOT_LEASED}`;
const REQUESTED_FIRST = `${BY_DUE} AND w.priority = ${REQUESTED} ORDER BY w.due_ms, w.rowid`;
const ALL_BY_DUE = `${BY_DUE} ORDER BY w.priority, w.due_ms, w.rowid`;
const ALL_IN_SEQUENCE = `SELECT w.priority, w.created_ms AS ms, w.rowid
  FROM delivery AS w INDEXED BY delivery_sequence
  WHERE w.subscription_id = requested.value AND w.sequence IS NOT NULL AND w.priority = ${NORMAL}
    AND w.due_ms IS NOT NULL AND ${NOT_LEASED} ORDER BY w.sequence`;

/** The first `limit` pending deliveries of each that are not leased, due or not; of ordered ones, with when they were made. */
export function loadWaiting(
  sql: Sql,
  claimables: readonly Claimable[],
  limit: number,
): readonly (readonly WaitingDelivery[])[] {
  const inSequence = claimables.filter(({ dueByMs }) => dueByMs === Infinity);
  const rows = new Map<number, WaitingDelivery[]>();
  const load = (some: readonly Claimable[], query: string): void => {
    if (some.length === 0) return;
    const found = sql.first<{ rows: string }>(
      `SELECT json_group_array(json((
          SELECT json_group_array(json_array(priority, ms, rowid)) FROM (${query} LIMIT ?2)))) AS rows
        FROM json_each(?1) AS requested`,
      JSON.stringify(some.map(({ id }) => id)),
      limit,
    )!;
    for (const [index, own] of (JSON.parse(found.rows) as WaitingDelivery[][]).entries()) {
      const { id } = some[index]!;
      rows.set(id, [...(rows.get(id) ?? []), ...own]);
    }
  };
  load(
    claimables.filter(({ dueByMs }) => dueByMs < Infinity),
    ALL_BY_DUE,
  );
  load(inSequence, REQUESTED_FIRST);
  load(inSequence, ALL_IN_SEQUENCE);
  return claimables.map(({ id }) => rows.get(id)!);
}
