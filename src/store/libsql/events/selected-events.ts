import type { EventSelection, RowidRange } from "../../events.ts";
import { matchOf } from "../catalog/matching.ts";
import type { Sql } from "../thread/sql.ts";
import { ALL_ACTIONS, BLOCK_ROWIDS } from "./counts.ts";

type Order = EventSelection["order"];

/** The events of some actions, or of all: counted, and walked in order. */
export class SelectedEvents {
  readonly #sql: Sql;
  /** The rowids of the actions; `undefined` for all. */
  readonly #actions: readonly number[] | undefined;
  /** The actions as JSON, which is `?1` in all statements here. */
  readonly #list: string;

  constructor(sql: Sql, actions: readonly number[] | undefined) {
    this.#sql = sql;
    this.#actions = actions;
    this.#list = JSON.stringify(actions ?? null);
  }

  static matching(
    sql: Sql,
    { action, applications }: Pick<EventSelection, "action" | "applications">,
  ): SelectedEvents {
    if (action === undefined && applications === undefined) return new SelectedEvents(sql, undefined);
    const named = action === undefined ? { condition: "TRUE", values: [] } : matchOf(action, "action");
    const rows = sql.rows<{ id: number }>(
      `SELECT rowid AS id FROM action
        WHERE (?1 IS NULL OR application IN (SELECT value FROM json_each(?1))) AND ${named.condition}`,
      applications === undefined ? null : JSON.stringify(applications),
      ...named.values,
    );
    return new SelectedEvents(
      sql,
      rows.map(({ id }) => id),
    );
  }

  count(ranges: readonly RowidRange[]): number {
    return ranges.reduce((sum, range) => sum + this.#countRange(range), 0);
  }

  /** The rowid of the event before which so many others are, oldest first. */
  rowidAt(ranges: readonly RowidRange[], before: number): number | undefined {
    let rest = before;
    for (const range of ranges) {
      const events = this.#countRange(range);
      if (rest < events) return this.#rowidWithin(range, rest);
      rest -= events;
    }
    return undefined;
  }

  /** Halves the range until a block is left. */
  #rowidWithin(range: RowidRange, before: number): number | undefined {
    let { low, high } = range;
    let rest = before;
    while (high - low >= BLOCK_ROWIDS) {
      const half = Math.floor((low + high) / 2 / BLOCK_ROWIDS) * BLOCK_ROWIDS;
      const middle = half > low ? half : half + BLOCK_ROWIDS;
      const events = this.#countRange({ low, high: middle - 1 });
      if (rest < events) high = middle - 1;
      else {
        rest -= events;
        low = middle;
      }
    }
    return this.#rowids({ low, high }, "asc", 1, rest)[0];
  }

  /** Adds up the counts of the range's whole blocks, and counts what is before and behind them. */
  #countRange({ low, high }: RowidRange): number {
    const first = Math.ceil(low / BLOCK_ROWIDS);
    const end = Math.floor((high + 1) / BLOCK_ROWIDS);
    if (end <= first) return this.#countIndexed(low, high);
    const blocks = this.#sql.value<number>(
      `SELECT coalesce(sum(c.events), 0) FROM json_each(?1) AS a CROSS JOIN event_count AS c
        WHERE c.action_id = a.value AND c.block BETWEEN ?2 AND ?3`,
      JSON.stringify(this.#actions ?? [ALL_ACTIONS]),
      first,
      end - 1,
    );
    const before = this.#countIndexed(low, first * BLOCK_ROWIDS - 1);
    return before + blocks + this.#countIndexed(end * BLOCK_ROWIDS, high);
  }

  #countIndexed(low: number, high: number): number {
    if (low > high) return 0;
    const actions = this.#actions === undefined ? "(SELECT rowid AS value FROM action)" : "json_each(?1)";
    return this.#sql.value(
      `SELECT count(*) FROM ${actions} AS a
        CROSS JOIN event AS e INDEXED BY event_action WHERE e.action_id = a.value AND e.rowid BETWEEN ?2 AND ?3`,
      this.#list,
      low,
      high,
    );
  }

  /** Answers the rowids of the first `limit` events of the ranges, in the order that is asked for. */
  walk(ranges: readonly RowidRange[], order: Order, limit: number): readonly number[] {
    const ids: number[] = [];
    for (const range of order === "asc" ? ranges : ranges.toReversed()) {
      let part = this.#firstPart(range, order);
      while (part !== undefined && ids.length < limit) {
        ids.push(...this.#rowids(part, order, limit - ids.length));
        const { low, high } = part;
        const rest =
          order === "asc" ? { low: high + 1, high: range.high } : { low: range.low, high: low - 1 };
        part = this.#firstPart(rest, order);
      }
    }
    return ids;
  }

  #rowids({ low, high }: RowidRange, order: Order, limit: number, offset = 0): readonly number[] {
    const isOne = this.#actions?.length === 1;
    const selected =
      this.#actions === undefined
        ? "event AS e WHERE"
        : isOne
          ? "event AS e INDEXED BY event_action WHERE e.action_id = ?1 ->> 0 AND"
          : "json_each(?1) AS a CROSS JOIN event AS e INDEXED BY event_action WHERE e.action_id = a.value AND";
    const rows = this.#sql.rows<{ id: number }>(
      `SELECT e.rowid AS id FROM ${selected} e.rowid BETWEEN ?2 AND ?3
        ORDER BY e.rowid ${order} LIMIT ?4 OFFSET ?5`,
      this.#list,
      low,
      high,
      limit,
      offset,
    );
    return rows.map(({ id }) => id);
  }

  /**
   * Answers where the first of the events are; `undefined` where the range has none. The events of several actions are in no
   * index together: a part of the range, which begins with the first of them, is sorted by itself, and that is never many.
   */
  #firstPart({ low, high }: RowidRange, order: Order): RowidRange | undefined {
    if (low > high) return undefined;
    if (this.#actions === undefined || this.#actions.length === 1) return { low, high };
    const nearest = order === "asc" ? "min" : "max";
    const first = this.#sql.value<number | null>(
      `SELECT ${nearest}((SELECT ${nearest}(e.rowid) FROM event AS e INDEXED BY event_action
          WHERE e.action_id = a.value AND e.rowid BETWEEN ?2 AND ?3)) FROM json_each(?1) AS a`,
      this.#list,
      low,
      high,
    );
    if (first === null) return undefined;
    return order === "asc"
      ? { low: first, high: Math.min(high, first + BLOCK_ROWIDS - 1) }
      : { low: Math.max(low, first - BLOCK_ROWIDS + 1), high: first };
  }
}
