import { MEASURE } from "../../../domain/stats/tally.ts";
import type { AttemptResult, Deactivated, FinishOptions, FinishOutcome } from "../../queue.ts";
import {
  type AttemptedDelivery,
  type DeliveryVerdict,
  type HandlerHealth,
  healthAfter,
  type SettingsInForce,
  verdictOn,
} from "../../rules/finish.ts";
import { recordServiceEvents } from "../events/service-events.ts";
import { StatsCounts } from "../history/stats.ts";
import type { Sql } from "../sql.ts";
import { claimNext, type StoredClaim } from "./claim.ts";
import { DELIVERY_STATE, settingOf } from "./delivery-state.ts";
import { releaseKeys } from "./key-order.ts";
import type { Work } from "../operation.ts";

/** A result as it crosses the thread. */
export interface FinishedRow extends AttemptResult {
  readonly nowMs: number;
  readonly options?: FinishOptions;
}

/**
 * Records attempts and moves their deliveries on, set-wise. A result counts once, while its claim is still the delivery's.
 * A subscription that was paused or deleted meanwhile needs no care: what is due again is then held or cancelled.
 */
export async function finishAttempts(
  work: Work,
  results: readonly FinishedRow[],
): Promise<readonly FinishOutcome<StoredClaim>[]> {
  // Results that come together are some milliseconds apart.
  const nowMs = results.reduce((latest, result) => Math.max(latest, result.nowMs), -Infinity);
  const options = results.at(-1)?.options ?? {};
  const leases = await loadLeased(work, results);
  const subscriptionIds = new Set([...leases.values()].map((leased) => leased.subscription_id));
  const attempted = await loadAttempted(work, subscriptionIds, options.retryScheduleMs);
  const counts = new StatsCounts();
  /** What is known of handlers, where that has changed. */
  const healths = new Map<number, HandlerHealth>();
  const deactivated: Deactivated[] = [];
  const ended: EndedAttempt[] = [];
  const outcomes = results.map((row, index): FinishOutcome<StoredClaim> => {
    const leased = leases.get(row.deliveryId);
    if (leased?.claim_id !== row.claimId) return { kind: "fenced" };
    const { subscription_id: subscriptionId } = leased;
    const series = [leased.action_id, subscriptionId] as const;
    const subscription = attempted.get(subscriptionId)!;
    const verdict = verdictOn(row, leased, subscription, row.nowMs);
    leases.delete(leased.id);
    ended.push({ index, leased, row, verdict });
    if (verdict.attempt !== undefined && verdict.attempt !== "returned") {
      counts.attempted(series, row, nowMs);
    }
    if (verdict.state === "failed") counts.add(nowMs, series, MEASURE.failed);
    const { state, retryAtMs } = verdict;
    const outcome = { kind: "stored", state, ...(retryAtMs === undefined ? {} : { retryAtMs }) } as const;
    const before = healths.get(subscriptionId) ?? subscription;
    const health = healthAfter(before, verdict, nowMs, options.disableAfterMs);
    if (health === before) return outcome;
    healths.set(subscriptionId, health);
    const { disabledReason: reason } = health;
    if (reason === null || reason === before.disabledReason) return outcome;
    deactivated.push({ subscriptionId, reason });
    return { ...outcome, deactivated: { subscriptionId, reason } };
  });
  await storeEnded(work, ended, nowMs);
  await counts.write(work);
  await storeHealth(work, healths);
  const keyed = ended.flatMap(({ index, leased, row }) => {
    const { subscription_id: subscription, key } = leased;
    return key === null ? [] : { index, key: [subscription, key] as const, leaseMs: row.nextLeaseMs };
  });
  const released = await releaseKeys(
    work,
    keyed.map(({ key }) => key),
    nowMs,
  );
  const idsOf = (is: (one: EndedAttempt) => boolean): number[] =>
    ended.filter(is).map(({ leased }) => leased.id);
  const failed = idsOf(({ verdict }) => verdict.state === "failed");
  const blocked = idsOf(({ verdict }) => verdict.startsBlocking === true);
  await recordServiceEvents(work, { failed, blocked, deactivated }, nowMs);
  const claims = await claimNext(work, keyed, nowMs);
  for (const [index, next] of claims)
    outcomes[index] = { ...outcomes[index]!, next } as FinishOutcome<StoredClaim>;
  if (released <= claims.size) return outcomes;
  // The first of evreg's own says for all that more is due. In the result of a consumer nobody looks at it.
  const first = ended.find(({ leased }) => leased.consumer === null)?.index;
  if (first !== undefined)
    outcomes[first] = { ...outcomes[first]!, isNextDue: true } as FinishOutcome<StoredClaim>;
  return outcomes;
}

/** A result that counts: which of all it is, and what becomes of its delivery. */
interface EndedAttempt {
  readonly index: number;
  readonly leased: LeasedDelivery;
  readonly row: FinishedRow;
  readonly verdict: DeliveryVerdict;
}

interface LeasedDelivery extends AttemptedDelivery {
  readonly id: number;
  readonly claim_id: number;
  readonly subscription_id: number;
  /** The action of its event; 0 where that is damaged. */
  readonly action_id: number;
  readonly attempt: number;
  /** Who took the delivery; `null` for one that evreg sent. */
  readonly consumer: string | null;
}

async function loadLeased(sql: Sql, rows: readonly FinishedRow[]): Promise<Map<number, LeasedDelivery>> {
  const leased = await sql.rows<LeasedDelivery>(
    `SELECT d.rowid AS id, l.claim_id, d.subscription_id, d.attempt + 1 AS attempt, d.failures, d.last_error AS lastError, l.consumer,
        d.key, coalesce((SELECT e.action_id FROM event AS e WHERE e.rowid = d.event_id), 0) AS action_id
      FROM list(?: id bigint) AS r
      CROSS JOIN lease AS l ON l.delivery_id = r.id
      CROSS JOIN delivery AS d ON d.rowid = l.delivery_id`,
    [...new Set(rows.map(({ deliveryId }) => deliveryId))],
  );
  return new Map(leased.map((row) => [row.id, row]));
}

/** A subscription of which something was attempted: its settings, and what is known of its handler. */
interface AttemptedSubscription extends SettingsInForce, HandlerHealth {
  readonly id: number;
}

type AttemptedRow = Omit<AttemptedSubscription, "isActive" | "retryScheduleMs"> & {
  readonly isActive: number;
  readonly ownSchedule: string | null;
};

/** @param scheduleMs the waits before retries of those that have no schedule of their own */
async function loadAttempted(
  sql: Sql,
  ids: ReadonlySet<number>,
  scheduleMs: readonly number[] | undefined,
): Promise<ReadonlyMap<number, AttemptedSubscription>> {
  const rows = await sql.rows<AttemptedRow>(
    `SELECT s.rowid AS id, s.handler, s.max_retries AS maxRetries,
        ${settingOf("on_exhausted")} AS onExhausted, ${settingOf("retry_schedule")} AS ownSchedule,
        s.active = 1 AND s.deleted_ms IS NULL AS isActive, NULL AS disabledReason, s.failing_since_ms AS failingSinceMs,
        s.last_failure_ms AS lastFailureMs, s.failing_total_ms AS failingTotalMs, s.slowed_until_ms AS slowedUntilMs
      FROM list(?1: id bigint) AS requested CROSS JOIN subscription AS s ON s.rowid = requested.id`,
    [...ids],
  );
  return new Map(
    rows.map(({ isActive, ownSchedule, ...row }) => {
      const schedule = ownSchedule === null ? (scheduleMs ?? null) : (JSON.parse(ownSchedule) as number[]);
      return [row.id, Object.assign(row, { isActive: isActive === 1, retryScheduleMs: schedule })];
    }),
  );
}

/** Stores what is known of handlers now, by their subscriptions, and deactivates those with a reason for that. */
async function storeHealth(sql: Sql, changed: ReadonlyMap<number, HandlerHealth>): Promise<void> {
  if (changed.size === 0) return;
  await sql.run(
    `UPDATE subscription SET failing_since_ms = r.failing_since_ms, last_failure_ms = r.last_failure_ms,
        failing_total_ms = r.failing_total_ms, slowed_until_ms = r.slowed_until_ms,
        active = iif(r.reason IS NULL, active, 0), disabled_reason = coalesce(r.reason, disabled_reason),
        inactive_since_ms = iif(r.reason IS NULL, inactive_since_ms, r.last_failure_ms)
      FROM list(?: id bigint, failing_since_ms bigint, last_failure_ms bigint, failing_total_ms bigint, slowed_until_ms bigint,
        reason text) AS r
      WHERE subscription.rowid = r.id`,
    Array.from(changed, ([id, health]) => [
      id,
      health.failingSinceMs,
      health.lastFailureMs,
      health.failingTotalMs,
      health.slowedUntilMs,
      health.disabledReason,
    ]),
  );
}

// Each row is made of one result, and packs the cells in this order.
const MOVED = `id bigint, state bigint, attempt bigint, failures bigint, due_ms bigint, finished_ms bigint, last_error text,
  started_ms bigint, duration_ms bigint, status_code bigint`;
const ATTEMPT = `delivery_id bigint, attempt bigint, started_ms bigint, duration_ms bigint, outcome text, status_code bigint,
  error_code text, dns_ms bigint, connect_ms bigint, first_byte_ms bigint, consumer text, response hex`;
const ATTEMPT_COLUMNS = ATTEMPT.replaceAll(/ (?:bigint|text|hex)\b/g, "");

function movedRow({ leased, row, verdict }: EndedAttempt, nowMs: number): readonly unknown[] {
  const { state, attempt: outcome, moved } = verdict;
  const { failures, dueMs, lastError } = moved!;
  const attempt = outcome === undefined ? leased.attempt - 1 : leased.attempt;
  const finishedMs = dueMs === null ? nowMs : null;
  const cells = [leased.id, DELIVERY_STATE[state], attempt, failures, dueMs, finishedMs, lastError];
  if (!isPlainFirst(leased, row)) return cells;
  return [...cells, Math.round(row.startedAtMs), rounded(row.durationMs), row.statusCode];
}

function attemptRow({ leased, row, verdict }: EndedAttempt): readonly unknown[] {
  const { attempt: outcome } = verdict;
  const { dnsMs, connectMs, firstByteMs } = row.connection ?? {};
  const text = textOf(row);
  return [
    leased.id,
    leased.attempt,
    Math.round(row.startedAtMs),
    rounded(row.durationMs),
    outcome,
    row.statusCode,
    row.errorCode ?? (outcome === "returned" ? "interrupted" : null),
    rounded(dnsMs),
    rounded(connectMs),
    rounded(firstByteMs),
    leased.consumer,
    // Half a surrogate pair has no UTF-8; an attempt must not be lost for it, so it becomes U+FFFD.
    text === undefined ? null : Buffer.from(text.toWellFormed()).toString("hex"),
  ];
}

/** What is kept of an answer, or in its place. */
function textOf({ refusal, tlsReason, response }: FinishedRow): string | undefined {
  return refusal ?? tlsReason ?? response;
}

/**
 * So many of a delivery's first and last attempts are stored. There are at most 21 retries, but no limit to retries by hand
 * and to attempts that were cut short.
 */
export const STORED_AT_EACH_END = 50;

/**
 * Whether it is a first attempt that delivered, with nothing to be stored but what its delivery has columns for. A row of its own
 * would take a tenth of the room of a small event, and a third of the time of this.
 */
function isPlainFirst({ attempt, consumer }: LeasedDelivery, row: FinishedRow): boolean {
  const isBare = row.errorCode === undefined && row.connection === undefined && textOf(row) === undefined;
  return attempt === 1 && consumer === null && row.ending === "delivered" && isBare;
}

function rounded(durationMs: number | undefined): number | null {
  return durationMs === undefined ? null : Math.max(0, Math.round(durationMs));
}

async function storeEnded(sql: Sql, ended: readonly EndedAttempt[], nowMs: number): Promise<void> {
  if (ended.length === 0) return;
  await sql.run(
    "DELETE FROM lease WHERE delivery_id IN list(?: id bigint)",
    ended.map(({ leased }) => leased.id),
  );
  const stored = ended.filter(
    ({ leased, row, verdict }) => verdict.attempt !== undefined && !isPlainFirst(leased, row),
  );
  if (stored.length > 0) {
    await sql.run(
      `INSERT INTO attempt (${ATTEMPT_COLUMNS}) SELECT ${ATTEMPT_COLUMNS} FROM list(?: ${ATTEMPT}) AS r`,
      stored.map(attemptRow),
    );
  }
  const moved = ended.filter(({ verdict }) => verdict.moved !== undefined);
  if (moved.length > 0) {
    await sql.run(
      `UPDATE delivery SET state = r.state, attempt = r.attempt, failures = r.failures, due_ms = r.due_ms,
          finished_ms = r.finished_ms, last_error = r.last_error,
          first_start_ms = coalesce(r.started_ms - created_ms, first_start_ms),
          first_duration_ms = coalesce(r.duration_ms, first_duration_ms),
          first_status_code = coalesce(r.status_code, first_status_code)
        FROM list(?: ${MOVED}) AS r WHERE delivery.rowid = r.id`,
      moved.map((one) => movedRow(one, nowMs)),
    );
  }
  const long = stored.filter(({ leased }) => leased.attempt > 2 * STORED_AT_EACH_END);
  if (long.length > 0) {
    await dropAttempts(
      sql,
      long.map(({ leased }) => [leased.id, leased.attempt - STORED_AT_EACH_END]),
    );
  }
}

export async function dropAttempts(
  sql: Sql,
  attempts: readonly (readonly [deliveryId: number, attempt: number])[],
): Promise<void> {
  await sql.run(
    "DELETE FROM attempt WHERE (delivery_id, attempt) IN (SELECT id, attempt FROM list(?: id bigint, attempt bigint) AS dropped)",
    attempts,
  );
}
