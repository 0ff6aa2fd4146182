import type { Attention, AttentionReason } from "../../../domain/operations.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { subscriptionState } from "../../../domain/words/attention.ts";
import { ATTENTION_REASONS } from "../../../model/answers.ts";
import { toIso } from "../../../runtime/clock.ts";
import type { AttentionPage, AttentionSelection } from "../../queue.ts";
import { listSubscriptions } from "../catalog/subscriptions.ts";
import { SelectedEvents } from "../events/list.ts";
import { idRangesOf } from "../events/timeline.ts";
import { each } from "../operation.ts";
import { isoOrNull, type Sql } from "../sql.ts";
import { countUnfinished } from "./backlog.ts";
import { DELIVERY_STATE, LEASE_OF, PENDING_OF } from "./delivery-state.ts";

// What an answer costs is bounded by the subscriptions there are, and not by their deliveries: those are counted in indexes,
// and only so far.

/** SQL of what has failed for good of the subscription `?1`. */
const FAILED = `FROM delivery INDEXED BY delivery_failed_event WHERE subscription_id = ?1 AND state = ${DELIVERY_STATE.failed}`;

/** One answer looks at so many failed deliveries, of all subscriptions and of each. */
const MAX_FAILED = 100_000;
const MAX_FAILED_EACH = 1_000;
/** One answer counts so many unfinished deliveries, of all subscriptions and of each. */
const MAX_COUNTED = 200_000;
const MAX_COUNTED_EACH = 10_000;
/** One answer counts of so many subscriptions what they have missed: with patterns of many actions, each takes a millisecond. */
export const MAX_MISSED = 200;
const DAY_MS = 86_400_000;

/** Counts what a subscription has missed; `null` where that is counted of enough others. */
type MissedBy = (subscription: Subscription, since: string | null) => Promise<number | null>;

/** One item before its deliveries are counted. */
interface Entry {
  readonly subscription: Subscription;
  readonly reason: AttentionReason;
  /** In ISO 8601; `null` where it is not known. */
  readonly since: string | null;
  readonly more?: Partial<Attention>;
}

export async function listAttention(
  sql: Sql,
  { nowMs, limit, applications }: AttentionSelection,
): Promise<AttentionPage> {
  const all = await listSubscriptions(sql, applications === undefined ? {} : { applications });
  const subscriptions = all.filter((one) => !isLeft(one, nowMs));
  const maxFailed = shareOf(MAX_FAILED, MAX_FAILED_EACH, subscriptions);
  let counted = 0;
  const missedBy: MissedBy = async (one, since) =>
    (counted += 1) > MAX_MISSED ? null : await countMissed(sql, one, since);
  const entries: Entry[] = [];
  for (const one of subscriptions) {
    const state = await stateOf(sql, one, nowMs, missedBy);
    const found = [state, await failuresOf(sql, one, maxFailed, nowMs)];
    entries.push(...found.filter((entry) => entry !== undefined));
  }
  const first = entries.toSorted(byGravity).slice(0, limit);
  const max = shareOf(MAX_COUNTED, MAX_COUNTED_EACH, first);
  const items = await each(first, (one) => itemOf(sql, one, nowMs, max));
  const subscribers = new Set(entries.map(({ subscription }) => subscription.rowid));
  return { items, total: entries.length, subscriptions: subscribers.size };
}

function shareOf(most: number, mostOfEach: number, all: readonly unknown[]): number {
  return Math.min(mostOfEach, Math.ceil(most / Math.max(1, all.length)));
}

/** A pull subscription that goes by itself within a day is there for a while only. */
const LEFT = { expiresWithinMs: DAY_MS, unclaimedMs: 120_000 };

/** Whether nobody has to do anything about it any more, such as that of a closed `evreg listen`. */
function isLeft(
  { mode, expires_after_ms: expiresMs, last_claim_at: claimed, timestamped }: Subscription,
  nowMs: number,
): boolean {
  const isTemporary = mode === "pull" && expiresMs !== null && expiresMs <= LEFT.expiresWithinMs;
  return isTemporary && Date.parse(claimed ?? timestamped) <= nowMs - LEFT.unclaimedMs;
}

/** Orders entries: the gravest first, and of each kind what has lasted longest. One that has no known start comes last. */
function byGravity(one: Entry, other: Entry): number {
  const rank = ({ reason }: Entry): number => ATTENTION_REASONS.indexOf(reason);
  const start = ({ since }: Entry): number => (since === null ? Number.MAX_VALUE : Date.parse(since));
  const inOrder = rank(one) - rank(other) || start(one) - start(other);
  return inOrder || one.subscription.rowid - other.subscription.rowid;
}

/** SQL of when the first delivery that a pull subscription is to get came due. What is leased is due as well, but somebody has it. */
const FIRST_DUE = `SELECT iif(${LEASE_OF("d")}, NULL, d.due_ms) ${PENDING_OF} ORDER BY d.due_ms LIMIT 1`;
const INACTIVE_SINCE = "SELECT inactive_since_ms FROM subscription WHERE rowid = ?1";
/**
 * So long something is due before it counts as unclaimed, as consumers may be about to claim it. It is more than the time
 * between two notes of a last claim.
 */
const UNCLAIMED_MS = 300_000;

/** Answers why a subscription needs a person, if it does by its state. */
async function stateOf(
  sql: Sql,
  subscription: Subscription,
  nowMs: number,
  missedBy: MissedBy,
): Promise<Entry | undefined> {
  const { rowid, mode, failing_since: failing, last_claim_at: claimed, timestamped } = subscription;
  const read = async (text: string): Promise<string | null> =>
    isoOrNull((await sql.value<number | null | undefined>(text, rowid)) ?? null);
  const due = mode === "pull" ? await read(FIRST_DUE) : null;
  const lastClaim = claimed ?? timestamped;
  const unclaimed = due !== null && due < lastClaim ? lastClaim : due;
  const isUnclaimed = unclaimed !== null && Date.parse(unclaimed) <= nowMs - UNCLAIMED_MS;
  const reason = subscriptionState(subscription, nowMs, isUnclaimed);
  switch (reason) {
    case "deactivated": {
      const since = await read(INACTIVE_SINCE);
      const missed = await missedBy(subscription, since);
      return { subscription, reason, since, more: { missed, error: subscription.disabled_reason } };
    }
    case "blocked":
      return { subscription, reason, since: failing, more: { delivery_id: subscription.blocked_by } };
    case "failing":
      return { subscription, reason, since: failing };
    case "unclaimed":
      return { subscription, reason, since: unclaimed };
    case "slowed":
      return { subscription, reason, since: null };
    case "paused": {
      const since = await read(INACTIVE_SINCE);
      const missed = await missedBy(subscription, since);
      const held = await sql.first(`SELECT 1 ${PENDING_OF} LIMIT 1`, rowid);
      const isNothing = held === undefined && missed === 0;
      return isNothing ? undefined : { subscription, reason, since, more: { missed } };
    }
    case "active":
      return undefined;
    default:
      return reason satisfies never;
  }
}

/**
 * Counts the events that a subscription has not got since it receives none.
 * @param since `null` where it was paused by an older evreg
 */
async function countMissed(
  sql: Sql,
  { rowid: id, timestamped }: Subscription,
  since: string | null,
): Promise<number> {
  const actions = await sql.column<number>(
    "SELECT action_id FROM binding INDEXED BY binding_subscription WHERE subscription_id = ? AND receives = 1",
    id,
  );
  // While it was active, each of its events made a delivery at once, also those of the last one's millisecond.
  const lastMs = await sql.value<number | undefined>(
    "SELECT created_ms + 1 FROM delivery INDEXED BY delivery_subscription WHERE subscription_id = ? ORDER BY rowid DESC LIMIT 1",
    id,
  );
  const fromMs = Math.max(lastMs ?? 0, Date.parse(since ?? timestamped));
  return await new SelectedEvents(sql, actions).count(await idRangesOf(sql, "event", fromMs, undefined));
}

interface FailedRow {
  readonly delivery_id: number;
  readonly error: string | null;
  readonly deliveries: number;
  readonly sinceMs: number;
  readonly publishedMs: number;
  /** When the first event was published whose delivery has failed for good, at any time. */
  readonly oldestMs: number;
}

/** Answers what has failed for good within a day, of the newest events: the last one, and what is to be said of all. */
async function failuresOf(
  sql: Sql,
  subscription: Subscription,
  most: number,
  nowMs: number,
): Promise<Entry | undefined> {
  const [last] = await sql.rows<FailedRow>(
    `SELECT id AS delivery_id, error, count(*) OVER () AS deliveries, min(finished_ms) OVER () AS sinceMs,
        min((SELECT timestamped_ms FROM event WHERE event.rowid = event_id)) OVER () AS publishedMs,
        (SELECT timestamped_ms FROM event WHERE event.rowid = (SELECT min(event_id) ${FAILED})) AS oldestMs
      FROM (SELECT rowid AS id, event_id, finished_ms, last_error AS error ${FAILED} ORDER BY event_id DESC LIMIT ?2) AS latest
      WHERE finished_ms >= ?3 ORDER BY finished_ms DESC, event_id LIMIT 1`,
    subscription.rowid,
    most,
    nowMs - DAY_MS,
  );
  if (last === undefined) return undefined;
  const { sinceMs, publishedMs, oldestMs, ...more } = last;
  const at_least = more.deliveries === most;
  // Of those that were not looked at, the first one counts.
  const published_from = isoOrNull(at_least ? Math.min(publishedMs, oldestMs) : publishedMs);
  const since = toIso(sinceMs);
  return { subscription, reason: "failed", since, more: { ...more, at_least, published_from } };
}

async function itemOf(
  sql: Sql,
  { subscription: one, reason, since, more }: Entry,
  nowMs: number,
  max: number,
): Promise<Omit<Attention, "found">> {
  const { rowid: subscription_id, application, subscription, action } = one;
  const isSlowed = one.slowed_until !== null && Date.parse(one.slowed_until) > nowMs;
  const item = {
    reason,
    subscription_id,
    application,
    subscription,
    action,
    since,
    until: one.active && reason !== "failed" && isSlowed ? one.slowed_until : null,
    published_from: null,
    deliveries: null,
    at_least: false,
    delivery_id: null,
    missed: null,
    error: null,
    ...more,
  };
  if (reason === "failed") return item;
  const { deliveries, isLeast } = await countUnfinished(sql, subscription_id, max);
  const counted = { ...item, deliveries, at_least: isLeast };
  if (!one.active) return counted;
  const error = await lastErrorOf(sql, subscription_id, item.delivery_id);
  // The one that blocks does not wait behind itself.
  return { ...counted, error, deliveries: Math.max(0, deliveries - (reason === "blocked" ? 1 : 0)) };
}

/** Answers the last error of the delivery that is named, or else of the newest that has failed so far, or for good. */
async function lastErrorOf(sql: Sql, subscription: number, delivery: number | null): Promise<string | null> {
  return await sql.value<string | null>(
    `SELECT coalesce(
        (SELECT last_error FROM delivery WHERE rowid = ?2),
        (SELECT last_error FROM delivery INDEXED BY delivery_waiting_event
          WHERE subscription_id = ?1 AND failures > 0 AND due_ms IS NOT NULL ORDER BY event_id DESC LIMIT 1),
        (SELECT last_error ${FAILED} ORDER BY event_id DESC LIMIT 1))`,
    subscription,
    delivery,
  );
}
