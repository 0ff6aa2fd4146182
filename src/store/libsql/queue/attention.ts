import type { Attention } from "../../../domain/operations.ts";
import { LEFT_SUBSCRIPTION } from "../../../domain/subscription.ts";
import { toIso } from "../../../runtime/clock.ts";
import type { AttentionPage, AttentionSelection } from "../../queue.ts";
import {
  type AttentionCause,
  byGravity,
  causeOf,
  type SubscriptionCondition,
} from "../../rules/attention.ts";
import { SelectedEvents } from "../events/list.ts";
import { idRangesOf } from "../events/timeline.ts";
import { changedActivity } from "../history/audit.ts";
import { isoOrNull } from "../stored-record.ts";
import { type Sql, textOf } from "../thread/sql.ts";
import { countUnfinished } from "./backlog.ts";
import {
  DELIVERY_STATE,
  LEASE_OF,
  NORMAL,
  PENDING_OF,
  REQUESTED,
  settingOf,
  WAIT_END,
} from "./delivery-state.ts";
import { BLOCKED_BY } from "./key-order.ts";

// What an answer costs is bounded by the subscriptions there are, and not by their deliveries: those are counted in indexes,
// and only so far.

/** SQL of what has failed for good of the subscription `?1`. */
const FAILED = `FROM delivery INDEXED BY delivery_failed_event WHERE subscription_id = ?1 AND state = ${DELIVERY_STATE.failed}`;

/** One answer looks at so many failed deliveries, of all subscriptions and of each. */
const MAX_FAILED = 20_000;
const MAX_FAILED_EACH = 1_000;
/** One answer counts so many unfinished deliveries, of all subscriptions and of each. */
const MAX_COUNTED = 200_000;
const MAX_COUNTED_EACH = 10_000;
/** One answer counts what so many paused subscriptions have missed. */
const MAX_PAUSED = 200;
const DAY_MS = 86_400_000;

interface AttentionRow
  extends SubscriptionCondition, Pick<Attention, "application" | "subscription" | "action"> {
  readonly id: number;
  readonly createdMs: number;
  readonly hasDue: number;
  readonly hasFailed: number;
}

/** One item before its deliveries are counted. */
interface Entry extends AttentionCause {
  readonly row: AttentionRow;
}

/** Lists what needs a person, the gravest first, and of each kind what has lasted longest. */
export function listAttention(sql: Sql, query: AttentionSelection): AttentionPage {
  const { nowMs, limit } = query;
  const candidates = loadCandidates(sql, query);
  const entries: readonly Entry[] = [
    ...candidates.flatMap((row) => {
      const cause = causeOf(row, nowMs);
      return cause === undefined ? [] : [{ row, ...cause }];
    }),
    ...pausedOnes(sql, candidates),
    ...failedOnes(sql, candidates, nowMs),
  ];
  const first = entries
    .toSorted((one, other) => byGravity(one, other) || one.row.id - other.row.id)
    .slice(0, limit);
  const max = Math.min(MAX_COUNTED_EACH, Math.ceil(MAX_COUNTED / Math.max(1, first.length)));
  const items = first.map((one) => itemOf(sql, one, nowMs, max));
  return { items, total: entries.length, subscriptions: new Set(entries.map(({ row }) => row.id)).size };
}

/** SQL of when what is due of the subscription `s` came due. What is leased is due as well, but somebody has it. */
const OLDEST_DUE = [REQUESTED, NORMAL].map(
  (
    priority,
  ) => `coalesce((SELECT iif(${LEASE_OF("d")}, NULL, d.due_ms) FROM delivery AS d INDEXED BY delivery_due
    WHERE d.subscription_id = s.rowid AND d.due_ms IS NOT NULL AND d.priority = ${priority} ORDER BY d.due_ms LIMIT 1), ${Number.MAX_SAFE_INTEGER})`,
);
const UNCLAIMED_SINCE = `iif(s.mode = 'pull', max(coalesce(s.last_claim_ms, s.created_ms), min(${OLDEST_DUE.join(", ")})), NULL)`;

/** SQL that says whether nobody has to do anything about the subscription `s` any more, such as that of a closed `evreg listen`. */
const IS_LEFT = `(s.mode = 'pull' AND ${settingOf("expires_after_ms")} <= ${LEFT_SUBSCRIPTION.expiresWithinMs}
  AND coalesce(s.last_claim_ms, s.created_ms) <= ?1 - ${LEFT_SUBSCRIPTION.unclaimedMs})`;

function loadCandidates(sql: Sql, { nowMs, applications }: AttentionSelection): readonly AttentionRow[] {
  const rows = sql.rows<Omit<AttentionRow, "isActive"> & { active: number }>(
    `SELECT s.rowid AS id, s.application, s.subscription, s.action, s.active, ${textOf("s.disabled_reason")} AS disabledReason,
        s.created_ms AS createdMs, s.failing_since_ms AS failingSinceMs, s.last_failure_ms AS lastFailureMs,
        ${WAIT_END} AS waitEndMs, ${BLOCKED_BY} AS blockedBy,
        ${UNCLAIMED_SINCE} AS unclaimedSinceMs,
        EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_due WHERE subscription_id = s.rowid AND due_ms IS NOT NULL) AS hasDue,
        EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_failed_event
          WHERE subscription_id = s.rowid AND state = ${DELIVERY_STATE.failed}) AS hasFailed
      FROM subscription AS s
      WHERE s.deleted_ms IS NULL AND ${IS_LEFT} IS NOT 1
        AND (?2 IS NULL OR s.application IN (SELECT value FROM json_each(?2)))`,
    nowMs,
    applications === undefined ? null : JSON.stringify(applications),
  );
  return rows.map(({ active, ...row }) => Object.assign(row, { isActive: active === 1 }));
}

/** Answers the subscriptions that a person paused and that hold deliveries, or have missed events since. */
function pausedOnes(sql: Sql, candidates: readonly AttentionRow[]): readonly Entry[] {
  const paused = candidates.filter((one) => !one.isActive && one.disabledReason === null);
  if (paused.length === 0) return [];
  const changed = changedActivity(
    sql,
    paused.map(({ id }) => id),
  );
  return paused.flatMap((row, index): readonly Entry[] => {
    const sinceMs = changed.get(row.id) ?? null;
    const missed = index < MAX_PAUSED ? countMissed(sql, row, sinceMs) : null;
    return row.hasDue === 0 && (missed ?? 0) === 0
      ? []
      : [{ row, reason: "paused", sinceMs, more: { missed } }];
  });
}

/**
 * Counts the events that a subscription has not got since it receives none.
 * @param sinceMs `null` where the audit does not tell: it was paused by an older evreg, or too long ago
 */
function countMissed(sql: Sql, { id, createdMs }: AttentionRow, sinceMs: number | null): number {
  const matched = sql.rows<{ id: number }>(
    `SELECT action_id AS id FROM binding INDEXED BY binding_subscription WHERE subscription_id = ? AND receives = 1`,
    id,
  );
  const actions = matched.map(({ id: action }) => action);
  // While it was active, each of its events made a delivery at once, also those of the last one's millisecond.
  const lastMs = (): number | undefined =>
    sql.value(
      "SELECT created_ms + 1 FROM delivery INDEXED BY delivery_subscription WHERE subscription_id = ? ORDER BY rowid DESC LIMIT 1",
      id,
    );
  const fromMs = sinceMs ?? lastMs() ?? createdMs;
  return new SelectedEvents(sql, actions).count(idRangesOf(sql, "event", fromMs, undefined));
}

interface FailedRow {
  readonly delivery_id: number;
  readonly error: string | null;
  readonly deliveries: number;
  readonly sinceMs: number;
  readonly publishedMs: number;
}

/** Answers what has failed for good within a day, of the newest events: the last one, and what is to be said of all. */
function failedOnes(sql: Sql, candidates: readonly AttentionRow[], nowMs: number): readonly Entry[] {
  const failed = candidates.filter((one) => one.hasFailed === 1);
  const each = Math.min(MAX_FAILED_EACH, Math.ceil(MAX_FAILED / Math.max(1, failed.length)));
  return failed.flatMap((row): readonly Entry[] => {
    const last = sql.first<FailedRow>(
      `SELECT id AS delivery_id, error, count(*) OVER () AS deliveries, min(finished_ms) OVER () AS sinceMs,
          min((SELECT timestamped_ms FROM event WHERE event.rowid = event_id)) OVER () AS publishedMs
        FROM (SELECT rowid AS id, event_id, finished_ms, ${textOf("last_error")} AS error ${FAILED} ORDER BY event_id DESC LIMIT ?2)
        WHERE finished_ms >= ?3 ORDER BY finished_ms DESC, event_id LIMIT 1`,
      row.id,
      each,
      nowMs - DAY_MS,
    );
    if (last === undefined) return [];
    const { sinceMs, publishedMs, ...more } = last;
    const at_least = more.deliveries === each;
    const published_from = toIso(at_least ? Math.min(publishedMs, oldestFailed(sql, row.id)) : publishedMs);
    return [{ row, reason: "failed", sinceMs, more: { ...more, at_least, published_from } }];
  });
}

/** Answers when the first event was published whose delivery has failed for good. */
function oldestFailed(sql: Sql, subscription: number): number {
  return sql.value<number>(
    `SELECT timestamped_ms FROM event WHERE rowid = (SELECT event_id ${FAILED} ORDER BY event_id LIMIT 1)`,
    subscription,
  );
}

function itemOf(
  sql: Sql,
  { row, reason, sinceMs, more }: Entry,
  nowMs: number,
  max: number,
): Omit<Attention, "found"> {
  const { id, application, subscription, action, waitEndMs } = row;
  const isActive = row.isActive && reason !== "failed";
  const item = {
    reason,
    subscription_id: id,
    application,
    subscription,
    action,
    since: isoOrNull(sinceMs),
    until: isActive && waitEndMs > nowMs ? toIso(waitEndMs) : null,
    published_from: null,
    deliveries: null,
    at_least: false,
    delivery_id: null,
    missed: null,
    error: null,
    ...more,
  };
  if (reason === "failed") return item;
  const { deliveries, isLeast } = countUnfinished(sql, id, max);
  const counted = { ...item, deliveries, at_least: isLeast };
  if (reason === "paused") return counted;
  if (reason === "deactivated") return { ...counted, missed: countMissed(sql, row, sinceMs) };
  const error = lastErrorOf(sql, id, item.delivery_id);
  if (reason !== "blocked") return { ...counted, error };
  // The one that blocks does not wait behind itself.
  return { ...counted, error, deliveries: Math.max(0, deliveries - 1) };
}

/** So many deliveries are looked at for an error; those that wait for a retry are due last. */
const ERRORS = 20;

/**
 * Answers the last error of the delivery that is named, or of one that failed before and is sent again, or else of the newest
 * that failed for good.
 */
function lastErrorOf(sql: Sql, subscription: number, delivery: number | null): string | null {
  return sql.value<string | null>(
    `SELECT ${textOf("error")} FROM (SELECT coalesce(
        (SELECT last_error FROM delivery WHERE rowid = ?2),
        (SELECT last_error FROM (SELECT last_error ${PENDING_OF} ORDER BY priority DESC, due_ms DESC LIMIT ${ERRORS})
          WHERE last_error IS NOT NULL LIMIT 1),
        (SELECT last_error ${FAILED} ORDER BY event_id DESC LIMIT 1)) AS error)`,
    subscription,
    delivery,
  );
}
