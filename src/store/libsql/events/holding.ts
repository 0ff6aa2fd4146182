import type { Sql } from "../thread/sql.ts";

/** What JSON writes with a backslash may be any text. */
const WITH_ESCAPE = "instr(e.payload, x'5c') > 0";

/** Those of the events whose payloads may hold a text of each list as a value. */
export function idsHolding(
  sql: Sql,
  ids: readonly number[],
  lists: readonly (readonly string[])[],
): readonly number[] {
  const values: Uint8Array[] = [];
  const conditions = lists.map((texts) => {
    const ways = texts.filter(needsNoEscape).map((text) => {
      values.push(Buffer.from(`"${text}"`));
      return `instr(e.payload, ?${values.length + 1}) > 0`;
    });
    return `(${[WITH_ESCAPE, ...ways].join(" OR ")})`;
  });
  const query = `SELECT e.rowid AS id FROM json_each(?1) AS page CROSS JOIN event AS e ON e.rowid = page.value
    WHERE ${conditions.join(" AND ")}`;
  return sql.rows<{ id: number }>(query, JSON.stringify(ids), ...values).map(({ id }) => id);
}

function needsNoEscape(text: string): boolean {
  return JSON.stringify(text) === `"${text}"`;
}
