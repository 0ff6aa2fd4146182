import type { Attention, AttentionReason } from "../../../domain/operations.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { subscriptionState } from "../../../domain/words/attention.ts";
import { ATTENTION_REASONS } from "../../../model/answers.ts";
import { toIso } from "../../../runtime/clock.ts";
import type { AttentionPage, AttentionSelection } from "../../queue.ts";
import { listSubscriptions } from "../catalog/subscriptions.ts";
import { SelectedEvents } from "../events/list.ts";
import { idRangesOf } from "../events/timeline.ts";
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
/** One answer counts so many unfinished deliveries, of all subscriptions and of each; so many of each even where others have very many. */
const MAX_COUNTED = 200_000;
const MAX_COUNTED_EACH = 10_000;
const LEAST_COUNTED_EACH = 100;
/** One answer counts of so many subscriptions what they have missed: with patterns of many actions, each takes a millisecond. */
export const MAX_MISSED = 200;
const DAY_MS = 86_400_000;

type Item = Omit<Attention, "found">;

/** How many deliveries one answer may still count, and of how many subscriptions what they have missed. */
interface Budget {
  deliveries: number;
  missed: number;
}

export async function listAttention(
  sql: Sql,
  { nowMs, limit, applications }: AttentionSelection,
): Promise<AttentionPage> {
  const all = await listSubscriptions(sql, applications === undefined ? {} : { applications });
  const subscriptions = all.filter((one) => !isLeft(one, nowMs));
  const maxFailed = Math.min(MAX_FAILED_EACH, Math.ceil(MAX_FAILED / Math.max(1, subscriptions.length)));
  const budget: Budget = { deliveries: MAX_COUNTED, missed: MAX_MISSED };
  const items: Item[] = [];
  for (const one of subscriptions) {
    const state = await stateOf(sql, one, nowMs, budget);
    const found = [state, await failuresOf(sql, one, maxFailed, nowMs)];
    items.push(...found.filter((item) => item !== undefined));
  }
  const subscribers = new Set(items.map((item) => item.subscription_id));
  const first = items.toSorted(byGravity).slice(0, limit);
  return { items: first, total: items.length, subscriptions: subscribers.size };
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

/** Orders items: the gravest first, and of each kind what has lasted longest. One that has no known start comes last. */
function byGravity(one: Item, other: Item): number {
  const rank = ({ reason }: Item): number => ATTENTION_REASONS.indexOf(reason);
  const start = ({ since }: Item): number => (since === null ? Number.MAX_VALUE : Date.parse(since));
  const inOrder = rank(one) - rank(other) || start(one) - start(other);
  return inOrder || one.subscription_id - other.subscription_id;
}

function itemOf(one: Subscription, reason: AttentionReason): Item {
  const { rowid: subscription_id, application, subscription, action } = one;
  return {
    reason,
    subscription_id,
    application,
    subscription,
    action,
    since: null,
    until: null,
    published_from: null,
    deliveries: null,
    at_least: false,
    delivery_id: null,
    missed: null,
    error: null,
  };
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
  budget: Budget,
): Promise<Item | undefined> {
  const { rowid, mode, blocked_by: blocker, failing_since: failing, slowed_until: slowed } = subscription;
  const unclaimed = mode === "pull" ? await unclaimedSince(sql, subscription) : null;
  const isUnclaimed = unclaimed !== null && Date.parse(unclaimed) <= nowMs - UNCLAIMED_MS;
  const reason = subscriptionState(subscription, nowMs, isUnclaimed);
  if (reason === "active") return undefined;
  const most = Math.max(LEAST_COUNTED_EACH, Math.min(MAX_COUNTED_EACH, budget.deliveries));
  const { deliveries, isLeast } = await countUnfinished(sql, rowid, most);
  budget.deliveries -= deliveries;
  const item = { ...itemOf(subscription, reason), deliveries, at_least: isLeast };
  if (!subscription.active) {
    const since = isoOrNull(await sql.value<number | null>(INACTIVE_SINCE, rowid));
    budget.missed -= 1;
    const missed = budget.missed < 0 ? null : await countMissed(sql, subscription, since);
    const isNothing = reason === "paused" && deliveries === 0 && missed === 0;
    return isNothing ? undefined : { ...item, since, missed, error: subscription.disabled_reason };
  }
  return {
    ...item,
    since: reason === "unclaimed" ? unclaimed : failing,
    until: slowed !== null && Date.parse(slowed) > nowMs ? slowed : null,
    // The one that blocks does not wait behind itself.
    deliveries: deliveries - (blocker === null ? 0 : 1),
    delivery_id: blocker,
    error: await lastErrorOf(sql, rowid, blocker),
  };
}

/** Answers since when what is due of a pull subscription is claimed by nobody; `null` where nothing is due. */
async function unclaimedSince(
  sql: Sql,
  { rowid, last_claim_at: claimed, timestamped }: Subscription,
): Promise<string | null> {
  const due = isoOrNull((await sql.value<number | null | undefined>(FIRST_DUE, rowid)) ?? null);
  const lastClaim = claimed ?? timestamped;
  return due !== null && due < lastClaim ? lastClaim : due;
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
): Promise<Item | undefined> {
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
  return { ...itemOf(subscription, "failed"), since, ...more, at_least, published_from };
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
