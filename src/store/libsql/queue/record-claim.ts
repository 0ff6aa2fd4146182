import { recordEvents } from "../events/record.ts";
import type { EventBatch, RecordedLeases, WireRecordOutcome } from "./wire.ts";
import { countPublished } from "../history/stats-counts.ts";
import type { Work } from "../thread/operation.ts";
import type { Sql } from "../thread/sql.ts";
import { lease, REQUESTED_SUBSCRIPTIONS, SUBSCRIPTION_SQL } from "./claim.ts";
import { WAIT_END } from "./handler-health.ts";

/** A delivery that a call claims with its event. */
type WantedLease = readonly [eventId: number, subscriptionId: number];

/** Records events, and leases the deliveries that their calls claim, so that no claim has to look for them. */
export function recordAndClaim(
  work: Work,
  batches: readonly EventBatch[],
): readonly (readonly WireRecordOutcome[])[] {
  const outcomes = recordEvents(work, batches, work.bytes);
  countPublished(work, batches, outcomes);
  const wanted: WantedLease[] = [];
  let nowMs = -Infinity;
  let leaseMs = Infinity;
  for (const [index, { claim, events }] of batches.entries()) {
    if (claim === undefined) continue;
    const recorded = outcomes[index]!.findIndex(({ kind }) => kind === "recorded");
    const outcome = outcomes[index]![recorded];
    if (outcome?.kind !== "recorded" || outcome.deliveries === 0) continue;
    for (const subscriptionId of claim.subscriptions) wanted.push([outcome.rowid, subscriptionId]);
    nowMs = Math.max(nowMs, events[recorded]!.nowMs);
    leaseMs = Math.min(leaseMs, claim.leaseMs);
  }
  if (wanted.length === 0) return outcomes;
  const leased = leaseRecorded(work, wanted, nowMs, leaseMs);
  return outcomes.map((ofCall) =>
    ofCall.map((outcome) => {
      const leases = outcome.kind === "recorded" ? leased.get(outcome.rowid) : undefined;
      return leases === undefined ? outcome : { ...outcome, leases };
    }),
  );
}

/**
 * Leases deliveries that were just recorded. It leases none behind others of their key, and leaves those of subscriptions that
 * wait due for claims.
 * @returns by event
 */
function leaseRecorded(
  sql: Sql,
  wanted: readonly WantedLease[],
  nowMs: number,
  leaseMs: number,
): ReadonlyMap<number, RecordedLeases> {
  const { subscriptions, ids } = sql.first<{ subscriptions: ArrayBuffer; ids: string }>(
    `SELECT CAST(json_group_array(${SUBSCRIPTION_SQL}) AS BLOB) AS subscriptions, json_group_array(s.rowid) AS ids
      ${REQUESTED_SUBSCRIPTIONS}
      WHERE s.active = 1 AND s.deleted_ms IS NULL AND s.mode = 'push' AND ${WAIT_END} <= ?2`,
    JSON.stringify([...new Set(wanted.map(([, subscriptionId]) => subscriptionId))]),
    nowMs,
  )!;
  const open = new Set(JSON.parse(ids) as number[]);
  const deliveries = sql.rows<RecordedLeases["deliveries"][number] & { readonly eventId: number }>(
    `SELECT d.event_id AS eventId, d.rowid AS deliveryId, d.subscription_id AS subscriptionId
      FROM json_each(?) AS wanted
      CROSS JOIN delivery AS d INDEXED BY delivery_event
        ON d.event_id = wanted.value ->> 0 AND d.subscription_id = wanted.value ->> 1 AND d.due_ms IS NOT NULL`,
    JSON.stringify(wanted.filter(([, subscriptionId]) => open.has(subscriptionId))),
  );
  const shared = {
    claimId: lease(sql, deliveries, nowMs, leaseMs),
    subscriptions: Buffer.from(subscriptions).toString(),
  };
  const byEvent = Map.groupBy(deliveries, ({ eventId }) => eventId);
  const leases = [...byEvent].map(([eventId, own]): [number, RecordedLeases] => {
    return [eventId, { ...shared, deliveries: own }];
  });
  return new Map(leases);
}
