import type { Steps } from "../../../runtime/yielding.ts";
import type { Sql } from "../thread/sql.ts";

/** Events of a step, each of which takes a microsecond or two. */
const SLICE = 250;
/** What JSON writes with a backslash may be any text. */
const WITH_ESCAPE = "instr(e.payload, x'5c') > 0";

/** Those of the events whose payloads may hold a text of each list as a value. */
export function* idsHolding(
  sql: Sql,
  ids: readonly number[],
  lists: readonly (readonly string[])[],
): Steps<readonly number[]> {
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
  const found: number[] = [];
  for (let at = 0; at < ids.length; at += SLICE) {
    yield;
    const slice = JSON.stringify(ids.slice(at, at + SLICE));
    found.push(...sql.rows<{ id: number }>(query, slice, ...values).map(({ id }) => id));
  }
  return found;
}

function needsNoEscape(text: string): boolean {
  return JSON.stringify(text) === `"${text}"`;
}
