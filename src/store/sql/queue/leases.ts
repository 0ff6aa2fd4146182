import type { LeasedAttempt, LeaseExtension, LeaseKey } from "../../queue.ts";
import { SHARDS } from "../../rules/shards.ts";
import type { Work } from "../operation.ts";
import type { Sql } from "../sql.ts";
import { finishAttempts, type FinishedRow } from "./finish.ts";

export async function extendLeases(sql: Sql, leases: readonly LeaseExtension[]): Promise<readonly boolean[]> {
  const rows = leases.map(({ deliveryId, claimId, untilMs }) => [deliveryId, claimId, untilMs]);
  const extended = await sql.rows<{ id: number; claim_id: number }>(
    `UPDATE lease SET until_ms = r.until_ms FROM list(?: delivery bigint, claim bigint, until_ms bigint) AS r
      WHERE lease.delivery_id = r.delivery AND lease.claim_id = r.claim
      RETURNING lease.delivery_id AS id, lease.claim_id`,
    rows,
  );
  const held = new Map(extended.map((row) => [row.id, row.claim_id]));
  return leases.map(({ deliveryId, claimId }) => held.get(deliveryId) === claimId);
}

export async function findLeased(
  sql: Sql,
  subscription: number,
  leases: readonly LeaseKey[],
): Promise<readonly (LeasedAttempt | undefined)[]> {
  const attempts = await sql.rows<LeasedAttempt>(
    `SELECT d.rowid AS deliveryId, l.claim_id AS claimId, d.attempt + 1 AS attempt, d.failures, l.claimed_ms AS claimedMs,
        d.event_id AS eventId, coalesce(a.action, '') AS action
      FROM list(?1: delivery bigint, claim bigint) AS r
      CROSS JOIN lease AS l ON l.delivery_id = r.delivery AND l.claim_id = r.claim
      CROSS JOIN delivery AS d ON d.rowid = l.delivery_id AND d.subscription_id = ?2
      LEFT JOIN event AS e ON e.rowid = d.event_id
      LEFT JOIN action AS a ON a.rowid = e.action_id`,
    leases.map(({ deliveryId, claimId }) => [deliveryId, claimId]),
    subscription,
  );
  const held = new Map(attempts.map((one) => [`${one.deliveryId} ${one.claimId}`, one]));
  return leases.map(({ deliveryId, claimId }) => held.get(`${deliveryId} ${claimId}`));
}

/**
 * Makes deliveries due again whose lease ended by `nowMs`: what held them is gone, so their attempts were cut short.
 * @param cut the shards that nobody sends deliveries of any more: these are cut short as well, but for those that consumers have taken
 * @returns how many
 */
export async function releaseLeases(work: Work, nowMs: number, cut: readonly number[] = []): Promise<number> {
  const ended = await work.rows<FinishedRow>(
    `SELECT delivery_id AS deliveryId, claim_id AS claimId, claimed_ms AS startedAtMs, max(0, ?1 - claimed_ms) AS durationMs,
        'interrupted' AS ending, ?1 AS nowMs
      FROM lease CROSS JOIN delivery AS d ON d.rowid = lease.delivery_id
      WHERE until_ms <= ?1 OR consumer IS NULL AND d.subscription_id % ${SHARDS} IN list(?2: shard bigint)`,
    nowMs,
    cut,
  );
  if (ended.length === 0) return 0;
  return (await finishAttempts(work, ended)).filter(({ kind }) => kind === "stored").length;
}
