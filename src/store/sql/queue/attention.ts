import type { AttentionReason } from "../../../domain/operations.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { type AttentionItem, subscriptionState } from "../../../domain/words/attention.ts";
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

export async function listAttention(
  sql: Sql,
  { nowMs, limit, applications }: AttentionSelection,
): Promise<AttentionPage> {
  const all = await listSubscriptions(sql, applications === undefined ? {} : { applications });
  const subscriptions = all.filter((one) => !isLeft(one, nowMs));
  const maxFailed = shareOf(MAX_FAILED, MAX_FAILED_EACH, subscriptions);
  const items: AttentionItem[] = [];
  let inactive = 0;
  for (const one of subscriptions) {
    const isCounted = !one.active && (inactive += 1) <= MAX_MISSED;
    const found = [await stateOf(sql, one, nowMs, isCounted), await failuresOf(sql, one, maxFailed, nowMs)];
    items.push(...found.filter((item) => item !== undefined));
  }
  const first = items.toSorted(byGravity).slice(0, limit);
  const max = shareOf(MAX_COUNTED, MAX_COUNTED_EACH, first);
  return {
    items: await each(first, (item) => withUnfinished(sql, item, max)),
    total: items.length,
    subscriptions: new Set(items.map((item) => item.subscription_id)).size,
  };
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

/** Orders items: the gravest first, and of each kind what has lasted longest. One that has no known start comes last. */
function byGravity(one: AttentionItem, other: AttentionItem): number {
  const gravity = ATTENTION_REASONS.indexOf(one.reason) - ATTENTION_REASONS.indexOf(other.reason);
  return gravity || startOf(one) - startOf(other);
}

function startOf({ since }: AttentionItem): number {
  return since === null ? Number.MAX_VALUE : Date.parse(since);
}

function itemOf(
  { rowid: subscription_id, application, subscription, action }: Subscription,
  reason: AttentionReason,
  more: Partial<AttentionItem>,
): AttentionItem {
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
    ...more,
  };
}

/**
 * So long something is due before it counts as unclaimed, as consumers may be about to claim it. It is more than the time
 * between two notes of a last claim.
 */
const UNCLAIMED_MS = 300_000;

/** SQL of what else decides about the subscription `?1`: the first of its unfinished deliveries, and from when on it may miss events. */
const FACTS = `SELECT s.inactive_since_ms AS inactiveMs, first.due_ms AS dueMs, first.leased,
    max(coalesce(s.inactive_since_ms, s.created_ms), coalesce((SELECT created_ms + 1 FROM delivery INDEXED BY delivery_subscription
      WHERE subscription_id = ?1 ORDER BY rowid DESC LIMIT 1), 0)) AS missesFromMs
  FROM subscription AS s LEFT JOIN (
    SELECT d.due_ms, iif(${LEASE_OF("d")}, 1, 0) AS leased ${PENDING_OF} ORDER BY d.due_ms LIMIT 1) AS first ON TRUE
  WHERE s.rowid = ?1`;
type Facts = Readonly<Record<"inactiveMs" | "dueMs" | "leased", number | null>> & {
  /**
   * While it was active, each of its events made a delivery at once, also those of the last one's millisecond. One that an older
   * evreg has paused does not tell since when.
   */
  readonly missesFromMs: number;
};

/**
 * Answers why a subscription needs a person, if it does by its state.
 * @param isCounted whether what it has missed is counted
 */
async function stateOf(
  sql: Sql,
  one: Subscription,
  nowMs: number,
  isCounted: boolean,
): Promise<AttentionItem | undefined> {
  const { rowid, active, failing_since: failing, slowed_until: slowed } = one;
  const isActivePush = active && one.mode === "push";
  const facts = isActivePush ? undefined : await sql.first<Facts>(FACTS, rowid);
  const { inactiveMs = null, dueMs = null, leased = null } = facts ?? {};
  // What is leased is due as well, but somebody has it.
  const lastClaimMs = Date.parse(one.last_claim_at ?? one.timestamped);
  const unclaimedMs = dueMs === null || leased === 1 ? null : Math.max(dueMs, lastClaimMs);
  const isUnclaimed = unclaimedMs !== null && unclaimedMs <= nowMs - UNCLAIMED_MS;
  const reason = subscriptionState(one, nowMs, isUnclaimed);
  if (reason === "active") return undefined;
  const missed = isCounted ? await countEvents(sql, rowid, facts!.missesFromMs) : null;
  if (reason === "paused" && dueMs === null && missed === 0) return undefined;
  const isSlowed = active && slowed !== null && Date.parse(slowed) > nowMs;
  const unusedSince = isoOrNull(active ? unclaimedMs : inactiveMs);
  return itemOf(one, reason, {
    // What is slowed does not fail.
    since: active && reason !== "unclaimed" ? failing : unusedSince,
    until: isSlowed ? slowed : null,
    delivery_id: reason === "blocked" ? one.blocked_by : null,
    missed,
    error: one.disabled_reason,
  });
}

/** Counts the events since a time that a subscription stands for. */
async function countEvents(sql: Sql, id: number, fromMs: number): Promise<number> {
  const actions = await sql.column<number>(
    "SELECT action_id FROM binding INDEXED BY binding_subscription WHERE subscription_id = ? AND receives = 1",
    id,
  );
  return await new SelectedEvents(sql, actions).count(await idRangesOf(sql, "event", fromMs, undefined));
}

type Failures = Pick<AttentionItem, "delivery_id" | "error" | "deliveries"> &
  Readonly<Record<"sinceMs" | "publishedMs" | "oldestMs", number>>;

/** Answers what has failed for good within a day, of the newest events: the last one, and what is to be said of all. */
async function failuresOf(
  sql: Sql,
  subscription: Subscription,
  most: number,
  nowMs: number,
): Promise<AttentionItem | undefined> {
  const last = await sql.first<Failures>(
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
  // Of those that were not looked at, the first one counts, which may have failed at any time.
  const published_from = isoOrNull(at_least ? Math.min(publishedMs, oldestMs) : publishedMs);
  return itemOf(subscription, "failed", { since: toIso(sinceMs), ...more, at_least, published_from });
}

/** Adds how much is unfinished, and of what is sent the last error. */
async function withUnfinished(sql: Sql, item: AttentionItem, max: number): Promise<AttentionItem> {
  const { reason, subscription_id: id } = item;
  if (reason === "failed") return item;
  const { deliveries, isLeast } = await countUnfinished(sql, id, max);
  const counted = { ...item, deliveries, at_least: isLeast };
  if (reason === "deactivated" || reason === "paused") return counted;
  const error = await lastErrorOf(sql, id, item.delivery_id);
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
