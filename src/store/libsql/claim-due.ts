import { randomInt } from "node:crypto";
import type { Claim, ClaimRequest } from "../store.ts";
import type { BytesOut, Span } from "./bytes-out.ts";
import { addPayloads, type PayloadAsked } from "./payload-reads.ts";
import type { Sql } from "./sql.ts";

/** A claim as it crosses the thread. */
type WireClaim = Omit<Claim, "payload"> & { readonly payload: Span };

export interface WireClaimAnswer {
  readonly claims: readonly WireClaim[];
  readonly nextDueAtMs: number | undefined;
}

/** An active subscription with due or waiting deliveries. */
interface Head {
  readonly id: number;
  /** When the first of them comes due. */
  readonly due_ms: number;
}

interface Chosen {
  readonly id: number;
  readonly subscription_id: number;
  readonly due_ms: number;
  /** Its place among what its subscription would then have under way; the lower, the sooner. */
  readonly rank: number;
}

/** Claim ids are below this; the chance that a delivery gets one twice is nil, and its attempts are counted besides. */
const CLAIM_IDS = 2 ** 47;

/**
 * Leases due deliveries. The subscription with the fewest under way comes first, so one with a long backlog, or with
 * slow answers, takes no turn of another's. Only subscriptions that wait for something are looked at, and of a
 * saturated one not a single delivery.
 */
export function claimDue(sql: Sql, request: ClaimRequest, out: BytesOut): WireClaimAnswer {
  const { nowMs, limit, leaseMs, perSubscription, inFlight } = request;
  const busy = (id: number): number => inFlight.get(id) ?? 0;
  const heads = loadHeads(sql).filter((head) => busy(head.id) < perSubscription);

  const due = heads
    .filter((head) => head.due_ms <= nowMs)
    .toSorted((a, b) => busy(a.id) - busy(b.id) || a.due_ms - b.due_ms)
    // One past these would not be chosen: the first delivery of each that is left goes before its own first.
    .slice(0, Math.max(0, limit));
  const chosen = loadDue(sql, due, nowMs, Math.min(perSubscription, limit))
    .map(({ place, id, subscription_id, due_ms }): Chosen => {
      const rank = busy(subscription_id) + place;
      return { id, subscription_id, due_ms, rank };
    })
    .filter(({ rank }) => rank <= perSubscription)
    .toSorted((a, b) => a.rank - b.rank || a.due_ms - b.due_ms || a.id - b.id)
    .slice(0, Math.max(0, limit));

  const claims = lease(sql, chosen, nowMs, nowMs + leaseMs, out);
  return { claims, nextDueAtMs: nextDue(sql, heads, chosen, busy, perSubscription) };
}

/** Steps from subscription to subscription through the index of what waits; idle ones cost nothing. */
function loadHeads(sql: Sql): readonly Head[] {
  return sql.rows<Head>(
    `WITH RECURSIVE waiting (id) AS (
        SELECT (SELECT subscription_id FROM delivery INDEXED BY delivery_due WHERE due_ms IS NOT NULL
          ORDER BY subscription_id LIMIT 1)
      UNION ALL
        SELECT (SELECT d.subscription_id FROM delivery AS d INDEXED BY delivery_due
          WHERE d.due_ms IS NOT NULL AND d.subscription_id > waiting.id ORDER BY d.subscription_id LIMIT 1)
        FROM waiting WHERE waiting.id IS NOT NULL
      )
      SELECT s.rowid AS id, ${HEAD_OF("s.rowid")} AS due_ms
      FROM waiting CROSS JOIN subscription AS s
      WHERE s.rowid = waiting.id AND s.active = 1 AND s.deleted_ms IS NULL`,
  );
}

/** The first `most` due deliveries of each subscription; `place` counts from 1 in each. */
function loadDue(
  sql: Sql,
  heads: readonly Head[],
  nowMs: number,
  most: number,
): readonly { id: number; subscription_id: number; due_ms: number; place: number }[] {
  if (heads.length === 0 || most < 1) return [];
  return sql.rows(
    `SELECT d.rowid AS id, d.subscription_id, d.due_ms,
        row_number() OVER (PARTITION BY d.subscription_id ORDER BY d.due_ms, d.rowid) AS place
      FROM json_each(?1) AS h CROSS JOIN delivery AS d
      WHERE d.rowid IN (
        SELECT w.rowid FROM delivery AS w INDEXED BY delivery_due
        WHERE w.subscription_id = h.value AND w.due_ms <= ?2
        ORDER BY w.due_ms, w.rowid LIMIT ?3)`,
    JSON.stringify(heads.map((head) => head.id)),
    nowMs,
    most,
  );
}

function lease(
  sql: Sql,
  chosen: readonly Chosen[],
  nowMs: number,
  untilMs: number,
  out: BytesOut,
): readonly WireClaim[] {
  if (chosen.length === 0) return [];
  const ids = JSON.stringify(chosen.map(({ id }) => [id, randomInt(1, CLAIM_IDS)]));
  sql.run(
    `UPDATE delivery SET state = 1, due_ms = NULL, attempt = attempt + 1,
        claim_id = c.claim_id, claimed_ms = ?2, lease_until_ms = ?3
      FROM (SELECT value ->> 0 AS id, value ->> 1 AS claim_id FROM json_each(?1)) AS c
      WHERE delivery.rowid = c.id`,
    ids,
    nowMs,
    untilMs,
  );
  const rows = sql.rows<Omit<Claim, "payload"> & PayloadAsked>(
    `SELECT d.rowid AS deliveryId, d.claim_id AS claimId, d.attempt, d.failures, d.event_id AS eventId,
        a.action, length(e.payload) AS payloadBytes, e.timestamped_ms AS eventTimestampedMs,
        d.subscription_id AS subscriptionId, s.handler, s.secret, s.max_retries AS maxRetries
      FROM json_each(?) AS c
        CROSS JOIN delivery AS d ON d.rowid = c.value ->> 0
        CROSS JOIN event AS e ON e.rowid = d.event_id
        CROSS JOIN action AS a ON a.rowid = e.action_id
        CROSS JOIN subscription AS s ON s.rowid = d.subscription_id`,
    ids,
  );
  const spans = addPayloads(sql, rows, out);
  return rows.map((row) => Object.assign(row, { payload: spans.get(row.eventId)! }));
}

/** The earliest among subscriptions that have room left after these claims. */
function nextDue(
  sql: Sql,
  heads: readonly Head[],
  chosen: readonly Chosen[],
  busy: (id: number) => number,
  perSubscription: number,
): number | undefined {
  const claimed = new Map<number, number>();
  for (const { subscription_id: id } of chosen) claimed.set(id, (claimed.get(id) ?? 0) + 1);
  const again = [...claimed].filter(([id, count]) => busy(id) + count < perSubscription).map(([id]) => id);
  const moved =
    again.length === 0
      ? []
      : sql.rows<{ due_ms: number | null }>(
          `SELECT ${HEAD_OF("h.value")} AS due_ms FROM json_each(?) AS h`,
          JSON.stringify(again),
        );
  const times = [
    ...heads.filter((head) => !claimed.has(head.id)).map((head) => head.due_ms),
    ...moved.flatMap((row) => (row.due_ms === null ? [] : [row.due_ms])),
  ];
  return times.length === 0 ? undefined : times.reduce((a, b) => Math.min(a, b));
}

function HEAD_OF(id: string): string {
  return `(SELECT w.due_ms FROM delivery AS w INDEXED BY delivery_due
    WHERE w.subscription_id = ${id} AND w.due_ms IS NOT NULL ORDER BY w.due_ms LIMIT 1)`;
}
