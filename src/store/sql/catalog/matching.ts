import { isPattern, patternsOf } from "../../../domain/names.ts";
import type { Sql, SqlValue } from "../sql.ts";

// Which actions a subscription matches is kept in `binding`: publishing finds the subscriptions of an action by one index. A row
// stays when the match ends, so that the deliveries of an action are found.

/** SQL that is true of the names that an action or a pattern matches, or of all names, with its values. */
export function matchOf(
  action: string | undefined,
  column: string,
): { readonly condition: string; readonly values: readonly SqlValue[] } {
  if (action === undefined) return { condition: "TRUE", values: [] };
  if (!isPattern(action)) return { condition: `${column} = ?`, values: [action] };
  // What follows "." in ASCII is "/", which no name has.
  if (action === "*") return { condition: `${column} NOT BETWEEN 'evreg.' AND 'evreg/'`, values: [] };
  const name = action.slice(0, -".*".length);
  return { condition: `${column} BETWEEN ? AND ?`, values: [`${name}.`, `${name}/`] };
}

/** SQL that follows `FROM`: `s`, the active subscriptions that get the events of an action. */
export function receiversOf(actionId: string): string {
  return `binding AS b INDEXED BY binding_receiving CROSS JOIN subscription AS s ON s.rowid = b.subscription_id
        WHERE b.action_id = ${actionId} AND b.receives = 1 AND s.active = 1`;
}

/** Matches a subscription with the actions that its own stands for, and with no others. */
export async function matchActions(sql: Sql, subscriptionId: number, action: string): Promise<void> {
  await endMatches(sql, subscriptionId);
  const { condition, values } = matchOf(action, "a.action");
  await sql.run(
    `INSERT INTO binding (action_id, subscription_id, receives)
      SELECT a.rowid, ?, 1 FROM action AS a WHERE ${condition}
      ON CONFLICT (action_id, subscription_id) DO UPDATE SET receives = 1`,
    subscriptionId,
    ...values,
  );
}

/** Matches a subscription with no action, as one that is deleted. */
export async function endMatches(sql: Sql, subscriptionId: number): Promise<void> {
  await sql.run(
    "UPDATE binding INDEXED BY binding_subscription SET receives = 0 WHERE subscription_id = ? AND receives = 1",
    subscriptionId,
  );
}

/** Matches a new action with the subscriptions whose patterns stand for it. */
export async function matchNewAction(sql: Sql, actionId: number, name: string): Promise<void> {
  await sql.run(
    `INSERT INTO binding (action_id, subscription_id, receives)
      SELECT ?, s.rowid, 1
      FROM list(?: pattern text) AS p CROSS JOIN subscription AS s INDEXED BY subscription_action
      WHERE s.action = p.pattern AND s.deleted_ms IS NULL`,
    actionId,
    patternsOf(name),
  );
}
