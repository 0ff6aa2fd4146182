import { randomInt } from "node:crypto";
import { EvregError } from "../../../domain/error.ts";
import { addPayloads, PAYLOAD_BYTES } from "../events/payloads.ts";
import type { Share, TierLimit } from "../../queue.ts";
import type { ByteWriter } from "../thread/protocol.ts";
import { EngineFailure, jsonOf, type Sql, textOf, timeOf, wholeOf } from "../thread/sql.ts";
import { NORMAL, REQUESTED } from "./delivery-state.ts";
import { type Claimable, selectFairly, type Picked } from "./fair-share.ts";
import { WAIT_END } from "./handler-health.ts";
import { leasedSubscriptions } from "./order.ts";
import { CLAIM, type ClaimCall, type ClaimReply, type ClaimRow, SHARE, SUBSCRIPTION } from "./wire.ts";

/** Claim ids are below this; the chance that a delivery gets one twice is nil, and its attempts are counted besides. */
const CLAIM_IDS = 2 ** 47;
/**
 * An ordered one that has something leased is to be asked for again after so long. Whoever leased all of it claims when it
 * is done; but it may have become ordered with more than one under way, or one that died has the lease.
 */
const BUSY_RECHECK_MS = 250;

/**
 * Leases due deliveries. The subscription with the fewest leased comes first, so one with a long backlog, or with slow
 * answers, takes no turn of another's. Only subscriptions that wait for something are looked at, and of one without room
 * not a single delivery. An ordered one gets nothing while any of its deliveries is leased, then its first in their order.
 */
export function claimDue(sql: Sql, call: ClaimCall, out: ByteWriter): ClaimReply {
  const { nowMs, leaseMs, tiers, maxPayloadBytes } = call;
  const { claimables, recheckAtMs } = loadClaimables(sql, call);
  const open = claimables.filter(({ tier }) => isOpen(tiers[tier]));
  const { offered, unreadable } = loadReadable(sql, open, tiers);
  const { chosen, nextDueAtMs, cutTiers } = offered;
  const rows = withinBytes(offered.rows, maxPayloadBytes);
  const claimId = randomInt(1, CLAIM_IDS);
  lease(sql, rows, { claimId, nowMs, untilMs: nowMs + leaseMs });
  const spans = addPayloads(
    sql,
    rows.map((row) => ({ eventId: row[CLAIM.at.eventId], payloadBytes: row[CLAIM.at.payloadBytes] })),
    out,
  );
  const first = [...spans.values()].find((span) => span !== null);
  return {
    claimId,
    rows: JSON.stringify(rows),
    subscriptions: rows.length === 0 ? "[]" : offered.subscriptions,
    offset: first?.[0] ?? 0,
    // Of one that is not there at all nothing can be sent either.
    damaged: [
      ...new Set(rows.map((row) => row[CLAIM.at.eventId]).filter((id) => (spans.get(id) ?? null) === null)),
    ],
    unreadable,
    nextDueAtMs: earliestOf(nextDueAtMs, recheckAtMs),
    limitedTiers: [
      ...new Set([
        ...claimables.flatMap(({ tier }) => (isOpen(tiers[tier]) ? [] : [tier])),
        ...cutTiers,
        ...chosen.slice(rows.length).map(({ tier }) => tier),
      ]),
    ],
  };
}

function isOpen(tier: TierLimit | undefined): boolean {
  return tier !== undefined && tier.most > 0;
}

interface Waiting {
  readonly id: number;
  readonly ordered: number;
  /** `null` when it does not wait. */
  readonly waits_until_ms: number | null;
  /** Of one that waits. */
  readonly has_requested: number | null;
  /** Of one that waits: of its first delivery that nobody requested. */
  readonly first_due_ms: number | null;
}

interface Claimables {
  readonly claimables: readonly Claimable[];
  /** When the first that has room comes to have something due again, of those that are slowed or have to wait their turn. */
  readonly recheckAtMs: number | undefined;
}

/**
 * Active subscriptions that have room and a delivery which waits; those that have none cost nothing. One that is slowed
 * is among them only with deliveries that persons asked for; however many others it has, one of them is looked at.
 */
function loadClaimables(sql: Sql, { nowMs, shares, others, without }: ClaimCall): Claimables {
  const left = new Set(without);
  const named = new Map<number, Share>();
  const { at } = SHARE;
  for (let start = 0; start < shares.length; start += SHARE.count) {
    named.set(shares[start + at.id]!, {
      leased: shares[start + at.leased]!,
      room: shares[start + at.room]!,
      tier: shares[start + at.tier]!,
    });
  }
  // Steps from subscription to subscription through the index of what waits.
  const waiting = sql.rows<Waiting>(
    `WITH RECURSIVE waiting (id) AS (
        SELECT (SELECT subscription_id FROM delivery INDEXED BY delivery_due WHERE due_ms IS NOT NULL
          ORDER BY subscription_id LIMIT 1)
      UNION ALL
        SELECT (SELECT d.subscription_id FROM delivery AS d INDEXED BY delivery_due
          WHERE d.due_ms IS NOT NULL AND d.subscription_id > waiting.id ORDER BY d.subscription_id LIMIT 1)
        FROM waiting WHERE waiting.id IS NOT NULL
      ), found AS (
        SELECT s.rowid AS id, s.ordered, iif(${WAIT_END} > ?1, ${WAIT_END}, NULL) AS waits_until_ms
        FROM waiting CROSS JOIN subscription AS s
        WHERE s.rowid = waiting.id AND s.active = 1 AND s.deleted_ms IS NULL
      )
      SELECT id, ordered, waits_until_ms,
        CASE WHEN waits_until_ms IS NOT NULL THEN EXISTS (
          SELECT 1 FROM delivery AS d INDEXED BY delivery_due
          WHERE d.subscription_id = id AND d.priority = ${REQUESTED} AND d.due_ms IS NOT NULL) END AS has_requested,
        CASE WHEN waits_until_ms IS NOT NULL THEN (
          SELECT min(d.due_ms) FROM delivery AS d INDEXED BY delivery_due
          WHERE d.subscription_id = id AND d.priority = ${NORMAL} AND d.due_ms IS NOT NULL) END AS first_due_ms
      FROM found`,
    nowMs,
  );
  // The next of an ordered one must not begin before the end of the one before is stored, whoever has that.
  const busy = waiting.some(({ ordered }) => ordered === 1) ? leasedSubscriptions(sql) : new Set<number>();
  const claimables: Claimable[] = [];
  let recheckAtMs: number | undefined;
  for (const { id, ordered, waits_until_ms: waitsUntilMs, has_requested, first_due_ms } of waiting) {
    const { leased, room, tier } = named.get(id) ?? others;
    if (room === 0 || left.has(id)) continue;
    const isOrdered = ordered === 1;
    if (isOrdered && busy.has(id)) {
      recheckAtMs = earliestOf(recheckAtMs, nowMs + BUSY_RECHECK_MS);
    } else if (waitsUntilMs === null || has_requested === 1) {
      // An ordered one's deliveries are due whatever the clock says.
      const dueByMs = waitsUntilMs !== null ? -Infinity : isOrdered ? Infinity : nowMs;
      const notBeforeMs = waitsUntilMs ?? nowMs;
      claimables.push({ id, leased, room, tier, isOrdered, dueByMs, notBeforeMs });
    } else {
      recheckAtMs = earliestOf(recheckAtMs, Math.max(isOrdered ? 0 : (first_due_ms ?? 0), waitsUntilMs));
    }
  }
  return { claimables, recheckAtMs };
}

interface Selected extends Picked {
  readonly rows: readonly ClaimRow[];
  /** Of all of them, as JSON. */
  readonly subscriptions: string;
}

/**
 * What is due with all that it takes to send it. Where the rows of a subscription cannot be read, it is left out, and its
 * number answered: what is damaged of one must not keep back the deliveries of all.
 */
function loadReadable(
  sql: Sql,
  claimables: readonly Claimable[],
  tiers: readonly TierLimit[],
): { readonly offered: Selected; readonly unreadable: readonly number[] } {
  try {
    return { offered: loadSelected(sql, claimables, tiers), unreadable: [] };
  } catch (error) {
    if (error instanceof EngineFailure) throw error;
    const unreadable = claimables.filter((claimable) => !canBeRead(sql, claimable, tiers));
    // Then it is not for what one of them has.
    if (unreadable.length === 0) throw error;
    const readable = claimables.filter((claimable) => !unreadable.includes(claimable));
    return { offered: loadSelected(sql, readable, tiers), unreadable: unreadable.map(({ id }) => id) };
  }
}

function canBeRead(sql: Sql, claimable: Claimable, tiers: readonly TierLimit[]): boolean {
  try {
    loadSelected(sql, [claimable], tiers);
    return true;
  } catch (error) {
    if (error instanceof EngineFailure) throw error;
    return false;
  }
}

function loadSelected(sql: Sql, claimables: readonly Claimable[], tiers: readonly TierLimit[]): Selected {
  const picked = selectFairly(sql, claimables, tiers);
  const rows = loadRows(
    sql,
    picked.chosen.map(({ id }) => id),
  );
  return { ...picked, rows, subscriptions: loadSubscriptions(sql, rows) };
}

const CLAIM_SQL = CLAIM.select({
  deliveryId: "d.rowid",
  attempt: `${wholeOf("d.attempt")} + 1`,
  failures: wholeOf("d.failures"),
  subscriptionId: wholeOf("d.subscription_id"),
  eventId: wholeOf("d.event_id"),
  payloadBytes: PAYLOAD_BYTES,
  timestampedMs: timeOf("e.timestamped_ms"),
  action: "coalesce(a.action, '')",
  isLate: "d.created_ms > e.timestamped_ms",
});

const SUBSCRIPTION_SQL = SUBSCRIPTION.select({
  subscriptionId: "s.rowid",
  handler: textOf("s.handler"),
  maxRetries: "s.max_retries",
  secret: "k.secret",
  previousSecret: "k.previous_secret",
  previousUntilMs: "k.previous_until_ms",
  bearer: "k.bearer",
  bearerToken: "k.bearer_token",
  settings: textOf("s.settings"),
});

/** An event that is not there, or damaged, is told of when its payload is read. */
function loadRows(sql: Sql, ids: readonly number[]): readonly ClaimRow[] {
  if (ids.length === 0) return [];
  const { rows, good } = sql.first<{ rows: ArrayBuffer; good: number | null }>(
    `SELECT CAST(json_group_array(${CLAIM_SQL}) AS BLOB) AS rows,
        sum(typeof(d.attempt) = 'integer' AND typeof(d.failures) = 'integer' AND typeof(d.created_ms) = 'integer'
          AND typeof(d.due_ms) = 'integer' AND typeof(d.event_id) = 'integer' AND typeof(d.last_error) IN ('null', 'text')) AS good
      FROM json_each(?) AS asked
      CROSS JOIN delivery AS d ON d.rowid = asked.value
      LEFT JOIN event AS e ON e.rowid = d.event_id
      LEFT JOIN action AS a ON a.rowid = e.action_id`,
    JSON.stringify(ids),
  )!;
  // Of one with a value of another type no result could be written: it would be sent again and again.
  if (good !== ids.length) throw unreadableRow();
  return jsonOf<ClaimRow[]>(rows);
}

/** As many from the front as have payloads that fit in, and one at least. */
function withinBytes(rows: readonly ClaimRow[], maxBytes: number): readonly ClaimRow[] {
  const seen = new Set<number>();
  let bytes = 0;
  for (const [index, row] of rows.entries()) {
    const eventId = row[CLAIM.at.eventId];
    if (seen.has(eventId)) continue;
    seen.add(eventId);
    bytes += row[CLAIM.at.payloadBytes];
    if (index > 0 && bytes > maxBytes) return rows.slice(0, index);
  }
  return rows;
}

function lease(
  sql: Sql,
  rows: readonly ClaimRow[],
  { claimId, nowMs, untilMs }: { claimId: number; nowMs: number; untilMs: number },
): void {
  if (rows.length === 0) return;
  sql.run(
    `INSERT INTO lease (delivery_id, claim_id, claimed_ms, until_ms)
      SELECT value, ?2, ?3, ?4 FROM json_each(?1)`,
    JSON.stringify(rows.map((row) => row[CLAIM.at.deliveryId])),
    claimId,
    nowMs,
    untilMs,
  );
}

/** As JSON. */
function loadSubscriptions(sql: Sql, rows: readonly ClaimRow[]): string {
  if (rows.length === 0) return "[]";
  const ids = new Set(rows.map((row) => row[CLAIM.at.subscriptionId]));
  const found = sql.first<{ rows: ArrayBuffer; good: number | null }>(
    `SELECT CAST(json_group_array(${SUBSCRIPTION_SQL}) AS BLOB) AS rows,
        sum(typeof(s.handler) = 'text' AND typeof(s.created_ms) = 'integer' AND typeof(s.max_retries) = 'integer'
          AND (s.settings IS NULL OR iif(json_valid(s.settings), json_type(s.settings) = 'object', 0))) AS good
      FROM json_each(?) AS asked
      CROSS JOIN subscription AS s ON s.rowid = asked.value
      CROSS JOIN subscription_secret AS k ON k.subscription_id = s.rowid`,
    JSON.stringify([...ids]),
  )!;
  if (found.good !== ids.size) throw unreadableRow();
  return Buffer.from(found.rows).toString();
}

function unreadableRow(): EvregError {
  return new EvregError(
    "internal",
    "A record in the data file is damaged, and deliveries cannot be read. `evreg doctor --deep` tells which; restore a backup from before.",
  );
}

/** The earlier of two times, where `undefined` is no time at all. */
export function earliestOf(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}
