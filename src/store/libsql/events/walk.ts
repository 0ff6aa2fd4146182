import type { EventSelection } from "../../events.ts";
import { matchOf } from "../catalog/matching.ts";
import type { Sql } from "../thread/sql.ts";
import type { RowidRange } from "./timeline.ts";

/** Selects events by the rowids of their actions; all events where there is no list. */
export interface ActionFilter {
  readonly actions?: readonly number[];
}

export function selectActions(
  sql: Sql,
  { action, applications }: Pick<EventSelection, "action" | "applications">,
): ActionFilter {
  if (action === undefined && applications === undefined) return {};
  const named = action === undefined ? { condition: "TRUE", values: [] } : matchOf(action, "action");
  const rows = sql.rows<{ id: number }>(
    `SELECT rowid AS id FROM action
      WHERE ${applications === undefined ? "? IS NULL" : "application IN (SELECT value FROM json_each(?))"}
        AND ${named.condition}`,
    applications === undefined ? null : JSON.stringify(applications),
    ...named.values,
  );
  return { actions: rows.map(({ id }) => id) };
}

/** SQL that follows `SELECT`: the selected events `e` from rowid `?2` to `?3`. `?1` are the actions as JSON. */
export function selectedEvents({ actions }: ActionFilter): string {
  if (actions === undefined) return "FROM event AS e WHERE e.rowid BETWEEN ?2 AND ?3";
  const { length } = actions;
  return length === 1
    ? "FROM event AS e INDEXED BY event_action WHERE e.action_id = ?1 ->> 0 AND e.rowid BETWEEN ?2 AND ?3"
    : `FROM json_each(?1) AS a CROSS JOIN event AS e INDEXED BY event_action
        WHERE e.action_id = a.value AND e.rowid BETWEEN ?2 AND ?3`;
}

/** Answers the rowids of the first `limit` selected events of the ranges, in the order that is asked for. */
export function walkEvents(
  sql: Sql,
  filter: ActionFilter,
  ranges: readonly RowidRange[],
  order: EventSelection["order"],
  limit: number,
): readonly number[] {
  const ids: number[] = [];
  for (const range of order === "asc" ? ranges : ranges.toReversed()) {
    let part: RowidRange | undefined = firstPart(sql, filter, range, order);
    while (part !== undefined && ids.length < limit) {
      const { low, high } = part;
      const rows = sql.rows<{ id: number }>(
        `SELECT e.rowid AS id ${selectedEvents(filter)} ORDER BY e.rowid ${order} LIMIT ?4`,
        JSON.stringify(filter.actions ?? null),
        low,
        high,
        limit - ids.length,
      );
      ids.push(...rows.map(({ id }) => id));
      const rest = order === "asc" ? { low: high + 1, high: range.high } : { low: range.low, high: low - 1 };
      part = firstPart(sql, filter, rest, order);
    }
  }
  return ids;
}

/** How many rowids a part of a range has. */
const PART_ROWIDS = 4_096;

/**
 * Answers where the first of the selected events are; `undefined` where the range has none. The events of several actions are
 * in no index together: a part of the range, which begins with the first of them, is sorted by itself, and that is never many.
 */
function firstPart(
  sql: Sql,
  { actions }: ActionFilter,
  { low, high }: RowidRange,
  order: EventSelection["order"],
): RowidRange | undefined {
  if (low > high) return undefined;
  if (actions === undefined || actions.length === 1) return { low, high };
  const nearest = order === "asc" ? "min" : "max";
  const first = sql.value<number | null>(
    `SELECT ${nearest}((SELECT ${nearest}(e.rowid) FROM event AS e INDEXED BY event_action
        WHERE e.action_id = a.value AND e.rowid BETWEEN ?2 AND ?3)) FROM json_each(?1) AS a`,
    JSON.stringify(actions),
    low,
    high,
  );
  if (first === null) return undefined;
  return order === "asc"
    ? { low: first, high: Math.min(high, first + PART_ROWIDS - 1) }
    : { low: Math.max(low, first - PART_ROWIDS + 1), high: first };
}
