import type { Delivery } from "../../domain/delivery.ts";
import { deliveryOf, type DeliveryRow, JOIN_NAMES, SELECT_DELIVERY } from "./delivery-row.ts";
import type { Steps } from "./read-steps.ts";
import type { Sql, SqlValue } from "./sql.ts";
import type { RowidRange } from "./time-range.ts";

/** What a delivery must meet to be listed. */
export interface Filter {
  /** Rising; what is not in them is not listed. */
  readonly ranges: readonly RowidRange[];
  /** Conditions on `d`, the delivery, and `s`, its subscription. */
  readonly conditions: readonly string[];
  readonly values: readonly SqlValue[];
  readonly limit: number;
}

/** Where to look: rowids that lie in order in an index. Goes on with `AND` and a condition on the rowid. */
export interface Source {
  /** Queries whose rows are merged; each takes `values` in its turn. */
  readonly each: string;
  readonly values: readonly SqlValue[];
}

/** Candidates of a step at most; where they lie far apart, each takes two microseconds. */
const WINDOW = 512;
const GROWTH = 4;

/** Takes the source's rowids newest first, a window a step, until enough of them meet the filter. */
export function* walkDown(sql: Sql, { each, values }: Source, filter: Filter): Steps<readonly Delivery[]> {
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

/** The newest of these that meet the filter, whatever order they are in. */
export function* pickNewest(sql: Sql, ids: readonly number[], filter: Filter): Steps<readonly Delivery[]> {
  // Numbers alone are put in order four times as fast as with a function that compares them.
  const sorted = Float64Array.from(ids).toSorted().toReversed();
  const found: Delivery[] = [];
  for (let at = 0; at < sorted.length && found.length < filter.limit; at += WINDOW) {
    // One may have been gathered twice: its place in the index can change between two steps.
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

/** The first `most` of the candidates that meet the filter as they are now, in the candidates' order. */
function loadMatching(
  sql: Sql,
  candidates: string,
  bound: readonly SqlValue[],
  { conditions, values }: Filter,
  most: number,
): readonly Delivery[] {
  const rows = sql.rows<DeliveryRow>(
    `${SELECT_DELIVERY} FROM (${candidates}) AS page CROSS JOIN delivery AS d ON d.rowid = page.id ${JOIN_NAMES}
      WHERE ${["TRUE", ...conditions].join(" AND ")} LIMIT ?`,
    ...bound,
    ...values,
    most,
  );
  return rows.map(deliveryOf);
}
