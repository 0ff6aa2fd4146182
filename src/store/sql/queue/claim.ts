import { randomInt } from "node:crypto";
import { EVENT_LIMITS } from "../../../domain/event.ts";
import { recordEvents } from "../events/record.ts";
import { countPublished } from "../history/stats.ts";
import { PAYLOAD_COLUMNS, type PayloadRequest, readPayloads } from "../events/payloads.ts";
import type { SubscriptionSettings } from "../../../domain/subscription-settings.ts";
import type { EventRecord, RecordOutcome } from "../../events.ts";
import type {
  Claim,
  ClaimAnswer,
  ClaimedEvent,
  ClaimedSubscription,
  ClaimQuota,
  ClaimRequest,
  ConsumerRequest,
  RecordClaim,
} from "../../queue.ts";
import { type Claimable, selectFairly, type WaitingDelivery } from "../../rules/fair-share.ts";
import type { RecordingCall } from "../../rules/recording.ts";
import { openSecrets, type StoredSecrets } from "../../secret-cipher.ts";
import { firstWithin, type Work } from "../operation.ts";
import type { Sql } from "../sql.ts";
import { DELIVERY_STATE, LEASE_OF, UNFINISHED_STATES, WAIT_END } from "./delivery-state.ts";
import type { OrderKey } from "./key-order.ts";

/** Claim ids are below this; that a delivery gets one twice is as good as impossible. */
const CLAIM_IDS = 2 ** 47;

/** Only subscriptions with pending deliveries are looked at, and no delivery of one without capacity. */
export async function claimDue(work: Work, call: ClaimRequest): Promise<ClaimAnswer<StoredClaim>> {
  const { nowMs, leaseMs, defaultQuota } = call;
  const known = new Map(call.quotas);
  const quotaOf = (id: number): ClaimQuota => {
    return work.owns(id) ? (known.get(id) ?? defaultQuota) : { leased: 0, capacity: 0, tier: 0 };
  };
  const { rows, ...due } = await selectDue(work, { ...call, mode: "push", quotaOf });
  return { ...due, claims: await lease(work, rows, { nowMs, leaseMs }) };
}

/** The time of the last claim is stored this often at most. */
const NOTED_EVERY_MS = 60_000;

/**
 * Leases deliveries to consumers. Each consumer has a lease of its own length, and an id of its own: with that of another it
 * could finish the other's deliveries.
 */
export async function claimForConsumers(
  work: Work,
  call: ConsumerRequest,
): Promise<ClaimAnswer<StoredClaim>> {
  const { nowMs, maxClaims, maxPayloadBytes } = call;
  const consumers = new Map(call.consumers);
  // Consumers that wait for deliveries have none, as far as their shares are concerned.
  const quotaOf = (id: number): ClaimQuota => {
    return { leased: 0, capacity: consumers.get(id)?.maxClaims ?? 0, tier: 0 };
  };
  const tiers = [{ maxClaims, isNewestFirst: false }];
  const { rows, ...due } = await selectDue(work, { nowMs, mode: "pull", quotaOf, tiers, maxPayloadBytes });
  // Many consumers may get the same events, whose payloads are read, and held, once.
  const payloads = await readPayloads(work, rows);
  const claims: StoredClaim[] = [];
  for (const [id, own] of Map.groupBy(rows, ({ subscriptionId }) => subscriptionId)) {
    const { leaseMs, consumer } = consumers.get(id)!;
    claims.push(...(await lease(work, own, { nowMs, leaseMs, consumer, payloads })));
  }
  await work.run(
    `UPDATE subscription SET last_claim_ms = ?2 WHERE rowid IN list(?1: id bigint)
      AND coalesce(last_claim_ms, 0) NOT BETWEEN ?2 - ${NOTED_EVERY_MS} + 1 AND ?2`,
    [...consumers.keys()],
    nowMs,
  );
  return { ...due, claims };
}

/** So many bytes of payloads may be leased by a transaction that stores results. */
const MAX_NEXT_BYTES = 8 * 1_024 * 1_024;

/** A result that was stored, by which of all it is, and for how long it wants what comes next in its order. */
interface KeyedResult {
  readonly index: number;
  readonly key: OrderKey;
  /** See `AttemptResult.nextLeaseMs`. */
  readonly leaseMs: number | undefined;
}

/**
 * Leases what is due of the keys of results, for whoever has stored those before.
 * @param results each key once
 * @returns each claim with a result of its subscription, which has capacity for it
 */
export async function claimNext(
  work: Work,
  results: readonly KeyedResult[],
  nowMs: number,
): Promise<ReadonlyMap<number, StoredClaim>> {
  const next = new Map<number, StoredClaim>();
  const wanted = results.filter((one) => one.leaseMs !== undefined);
  const leaseMs = wanted[0]?.leaseMs;
  if (leaseMs === undefined) return next;
  const keys = wanted.map(({ key }) => key);
  const due = withinBytes(await loadSendable(work, OF_KEYS, keys, nowMs), MAX_NEXT_BYTES);
  const bySubscription = Map.groupBy(wanted, ({ key: [subscription] }) => subscription);
  for (const claim of await lease(work, due, { nowMs, leaseMs })) {
    next.set(bySubscription.get(claim.subscription.subscriptionId)!.pop()!.index, claim);
  }
  return next;
}

/** SQL of the deliveries `d` of keys, and of events, each with its subscription `s`. */
const OF_KEYS = `list(?2: subscription bigint, key bigint) AS p CROSS JOIN subscription AS s ON s.rowid = p.subscription
  CROSS JOIN delivery AS d INDEXED BY delivery_key
    ON d.subscription_id = s.rowid AND d.key = p.key AND d.state IN ${UNFINISHED_STATES}`;
const OF_EVENTS = `list(?2: subscription bigint, event bigint) AS p CROSS JOIN subscription AS s ON s.rowid = p.subscription
  CROSS JOIN delivery AS d INDEXED BY delivery_event ON d.event_id = p.event AND d.subscription_id = s.rowid`;

/** Reads those of the deliveries that evreg may send now. In an order these are not behind others of their key. */
async function loadSendable(
  work: Work,
  from: string,
  wanted: readonly (readonly [subscriptionId: number, keyOrEvent: number])[],
  nowMs: number,
): Promise<readonly DueRow[]> {
  return await work.rows<DueRow>(
    `SELECT ${DUE_ROW} FROM ${from} ${JOIN_EVENT}
      WHERE d.state = ${DELIVERY_STATE.pending} AND d.due_ms <= ?1 AND NOT ${LEASE_OF("d")}
        AND s.active = 1 AND s.deleted_ms IS NULL AND s.mode = 'push' AND ${WAIT_END} <= ?1`,
    nowMs,
    wanted.filter(([subscription]) => work.owns(subscription)),
  );
}

interface DueQuery extends Pick<ClaimRequest, "nowMs" | "tiers" | "maxPayloadBytes"> {
  readonly mode: "push" | "pull";
  readonly quotaOf: (subscriptionId: number) => ClaimQuota;
}

type DueDeliveries = Omit<ClaimAnswer, "claims"> & { readonly rows: readonly DueRow[] };

/** Selects what is due, with all that sending needs. */
async function selectDue(sql: Sql, query: DueQuery): Promise<DueDeliveries> {
  const { tiers, maxPayloadBytes, nowMs } = query;
  const { chosen, nextDueAtMs, cutTiers } = await selectFairly(
    (some, limit) => loadWaiting(sql, some, limit),
    await loadClaimables(sql, query),
    tiers,
    nowMs,
  );
  const all = await sql.rows<DueRow>(
    `SELECT ${DUE_ROW} FROM list(?: id bigint) AS requested CROSS JOIN delivery AS d ON d.rowid = requested.id ${JOIN_EVENT}`,
    chosen.map(({ id }) => id),
  );
  const rows = withinBytes(all, maxPayloadBytes);
  return {
    rows,
    nextDueAtMs,
    limitedTiers: [...new Set([...cutTiers, ...chosen.slice(rows.length).map(({ tier }) => tier)])],
  };
}

/** Reads the active subscriptions with capacity and pending deliveries; others cost nothing. */
async function loadClaimables(sql: Sql, { mode, quotaOf }: DueQuery): Promise<readonly Claimable[]> {
  // The query steps from subscription to subscription through the index of what waits.
  const pending = await sql.rows<Pick<Claimable, "id" | "waitEndMs">>(
    `WITH RECURSIVE waiting (id) AS (
        SELECT (SELECT subscription_id FROM delivery INDEXED BY delivery_due WHERE due_ms IS NOT NULL
          ORDER BY subscription_id LIMIT 1)
      UNION ALL
        SELECT (SELECT d.subscription_id FROM delivery AS d INDEXED BY delivery_due
          WHERE d.due_ms IS NOT NULL AND d.subscription_id > waiting.id ORDER BY d.subscription_id LIMIT 1)
        FROM waiting WHERE waiting.id IS NOT NULL
      )
      SELECT s.rowid AS id, ${WAIT_END} AS waitEndMs FROM waiting CROSS JOIN subscription AS s
      WHERE s.rowid = waiting.id AND s.active = 1 AND s.deleted_ms IS NULL AND s.mode = ?`,
    mode,
  );
  return pending.map((one) => Object.assign(one, quotaOf(one.id))).filter(({ capacity }) => capacity > 0);
}

/** Reads the first `limit` pending deliveries of each that are not leased, due or not. */
async function loadWaiting(
  sql: Sql,
  claimables: readonly Claimable[],
  limit: number,
): Promise<readonly (readonly WaitingDelivery[])[]> {
  const rows = await sql.value<string>(
    `SELECT json_group_array(json((
        SELECT json_group_array(json_array(due_ms, rowid)) FROM (
          SELECT w.due_ms, w.rowid FROM delivery AS w INDEXED BY delivery_due
          WHERE w.subscription_id = requested.id AND w.due_ms IS NOT NULL AND NOT ${LEASE_OF("w")}
          ORDER BY w.due_ms, w.rowid LIMIT ?2) AS first)))
      FROM list(?1: id bigint) AS requested`,
    claimables.map(({ id }) => id),
    limit,
  );
  return JSON.parse(rows) as WaitingDelivery[][];
}

interface DueRow
  extends
    PayloadRequest,
    Pick<Claim, "deliveryId" | "attempt" | "failures">,
    Pick<ClaimedEvent, "action" | "timestampedMs"> {
  readonly subscriptionId: number;
  readonly isFromReplay: 0 | 1;
}

const DUE_ROW = `d.rowid AS deliveryId, d.attempt + 1 AS attempt, d.failures AS failures, d.subscription_id AS subscriptionId,
  d.event_id AS eventId, ${PAYLOAD_COLUMNS}, coalesce(e.timestamped_ms, 0) AS timestampedMs,
  coalesce(a.action, '') AS action, d.created_ms > e.timestamped_ms AS isFromReplay`;
/** A missing or damaged event shows when its payload is read, and must not stop the deliveries of others. */
const JOIN_EVENT =
  "LEFT JOIN event AS e ON e.rowid = d.event_id LEFT JOIN action AS a ON a.rowid = e.action_id";

/** Answers the first rows whose payloads fit, and at least one. */
function withinBytes(rows: readonly DueRow[], maxBytes: number): readonly DueRow[] {
  const seen = new Set<number>();
  const newBytesOf = ({ eventId, payloadBytes }: DueRow): number => {
    if (seen.has(eventId)) return 0;
    seen.add(eventId);
    return payloadBytes;
  };
  return firstWithin(rows, newBytesOf, maxBytes);
}

interface Lease {
  readonly nowMs: number;
  readonly leaseMs: number;
  /** Who takes deliveries of a pull subscription; left out for those that evreg sends. */
  readonly consumer?: string;
  /** The payloads of their events; by default those that are stored. */
  readonly payloads?: ReadonlyMap<number, Uint8Array | null>;
}

async function lease(
  work: Work,
  rows: readonly DueRow[],
  { nowMs, leaseMs, consumer, payloads }: Lease,
): Promise<readonly StoredClaim[]> {
  if (rows.length === 0) return [];
  const claimId = randomInt(1, CLAIM_IDS);
  await work.run(
    `INSERT INTO lease (delivery_id, claim_id, claimed_ms, until_ms, consumer)
      SELECT id, ?2, ?3, ?4, ?5 FROM list(?1: id bigint) AS due`,
    rows.map(({ deliveryId }) => deliveryId),
    claimId,
    nowMs,
    nowMs + leaseMs,
    consumer,
  );
  const read = payloads ?? (await readPayloads(work, rows));
  const subscriptions = await loadSubscriptions(work, new Set(rows.map((row) => row.subscriptionId)));
  const events = new Map<number, ClaimedEvent>();
  return rows.map((row) => {
    const { deliveryId, attempt, failures, subscriptionId, eventId, action, timestampedMs } = row;
    const payload = read.get(eventId) ?? undefined;
    const event = events.get(eventId) ?? { eventId, action, payload, timestampedMs };
    events.set(eventId, event);
    const isFromReplay = row.isFromReplay === 1;
    // Every delivery has its subscription, which is never removed.
    const subscription = subscriptions.get(subscriptionId)!;
    return { deliveryId, claimId, attempt, failures, isFromReplay, event, subscription };
  });
}

/**
 * A claim as it crosses the thread. The settings are JSON, as a filter may be large: the main thread keeps what it has read, and
 * puts it in their place.
 */
export type StoredClaim = Claim<StoredSubscription>;

export interface StoredSubscription extends Omit<ClaimedSubscription, "settings"> {
  readonly settings: SubscriptionSettings | string | null;
}

/** Reads a subscription that was not deleted, as a claim would have it. */
export async function findSendable(work: Work, id: number): Promise<StoredSubscription | undefined> {
  return (await loadSubscriptions(work, new Set([id]))).get(id);
}

type SubscriptionRow = StoredSecrets & Omit<StoredSubscription, "secret" | "previous" | "bearer">;

async function loadSubscriptions(
  work: Work,
  ids: ReadonlySet<number>,
): Promise<ReadonlyMap<number, StoredSubscription>> {
  if (ids.size === 0) return new Map();
  const rows = await work.rows<SubscriptionRow>(
    `SELECT s.rowid AS subscriptionId, s.application, s.subscription AS name, s.handler, s.max_retries AS maxRetries,
        k.secret, k.previous_secret AS previousSecret, k.previous_until_ms AS previousUntilMs, k.bearer,
        k.bearer_token AS bearerToken, s.settings
      FROM list(?1: id bigint) AS requested
      CROSS JOIN subscription AS s ON s.rowid = requested.id
      CROSS JOIN subscription_secret AS k ON k.subscription_id = s.rowid`,
    [...ids],
  );
  const subscriptions = rows.map((row): StoredSubscription => {
    const { subscriptionId, application, name, handler, maxRetries, settings } = row;
    const secrets = openSecrets(work.vault, { application, subscription: name }, row);
    return Object.assign({ subscriptionId, application, name, handler, maxRetries, settings }, secrets);
  });
  return new Map(subscriptions.map((one) => [one.subscriptionId, one]));
}

/** A call that records events, as it crosses the thread. */
export interface EventBatch extends Omit<RecordingCall, "events"> {
  readonly events: readonly WireEvent[];
  readonly claim?: RecordClaim | undefined;
}

export interface WireEvent extends Omit<EventRecord, "payload"> {
  /** Where its payload begins in the bytes of the batch. */
  readonly offset: number;
  readonly length: number;
}

/**
 * Records events, and leases the deliveries that their calls claim, so that no claim has to look for them. It leases none behind
 * others of their key, and leaves those of subscriptions that wait due for claims.
 */
export async function recordAndClaim(
  work: Work,
  batches: readonly EventBatch[],
): Promise<readonly (readonly RecordOutcome<StoredClaim>[])[]> {
  const withPayload = ({ offset, length, ...event }: WireEvent): EventRecord => {
    return { ...event, payload: work.bytes.subarray(offset, offset + length) };
  };
  const calls = batches.map(({ atomic, nowMs, events }) => ({
    atomic,
    nowMs,
    events: events.map(withPayload),
  }));
  const { outcomes, alike } = await recordEvents(work, calls, EVENT_LIMITS.atomicDeliveries);
  await countPublished(work, alike);
  const wanted: [subscriptionId: number, eventId: number][] = [];
  let leaseMs = Infinity;
  for (const [index, { claim }] of batches.entries()) {
    const recorded = outcomes[index]!.find(({ kind }) => kind === "recorded");
    if (claim === undefined || recorded?.kind !== "recorded" || recorded.deliveries === 0) continue;
    for (const subscription of claim.subscriptions) wanted.push([subscription, recorded.rowid]);
    leaseMs = Math.min(leaseMs, claim.leaseMs);
  }
  if (wanted.length === 0) return outcomes;
  const nowMs = batches.reduce((latest, batch) => Math.max(latest, batch.nowMs), -Infinity);
  const due = await loadSendable(work, OF_EVENTS, wanted, nowMs);
  // The caller has the payloads.
  const claims = await lease(work, due, { nowMs, leaseMs, payloads: new Map() });
  const byEvent = Map.groupBy(claims, ({ event }) => event.eventId);
  return outcomes.map((ofCall) =>
    ofCall.map((outcome) => {
      const own = outcome.kind === "recorded" ? byEvent.get(outcome.rowid) : undefined;
      return own === undefined ? outcome : { ...outcome, claims: own };
    }),
  );
}
