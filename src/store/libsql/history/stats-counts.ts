import { bucketOf } from "../../../domain/stats/histogram.ts";
import { TEN_SECONDS_MS } from "../../../domain/stats/stats.ts";
import { MEASURE } from "../../../domain/stats/tally.ts";
import type { AttemptResult } from "../../queue.ts";
import type { RefusedCount } from "../../history.ts";
import type { EventBatch, WireRecordOutcome } from "../queue/wire.ts";
import type { Sql } from "../thread/sql.ts";

// What happens is counted in the transaction that stores it, so that a crash takes either both or neither. A row for each ten
// seconds, series and measure of a group commit costs some microseconds; counting anew at a start would need an index of when
// deliveries ended, which each of them would pay for.

/** Makes a statement of `rows`, SQL that answers rows of `stats_open`, which it adds to that table. */
function addingTo(rows: string): string {
  return `INSERT INTO stats_open (at, action_id, subscription_id, measure, count, last_error) ${rows}
    ON CONFLICT DO UPDATE SET count = count + excluded.count, last_error = coalesce(excluded.last_error, last_error)`;
}

/** Answers what `stats_open.at` is for a time. */
export function tenSecondsOf(ms: number): number {
  return Math.floor(ms / TEN_SECONDS_MS);
}

/** A row of `stats_open`, by its columns in order. */
type OpenCount = [
  at: number,
  actionId: number,
  subscriptionId: number,
  measure: number,
  count: number,
  lastError: string | null,
];

/** What a transaction counts. */
export class StatsCounts {
  readonly #counts = new Map<string, OpenCount>();

  #add(
    ms: number,
    actionId: number,
    subscriptionId: number,
    measure: number,
    error: string | null = null,
  ): void {
    const at = tenSecondsOf(ms);
    const key = `${at},${actionId},${subscriptionId},${measure}`;
    const counted = this.#counts.get(key);
    if (counted === undefined) this.#counts.set(key, [at, actionId, subscriptionId, measure, 1, error]);
    else {
      counted[4] += 1;
      counted[5] = error;
    }
  }

  published(actionId: number, timestampedMs: number): void {
    this.#add(timestampedMs, actionId, 0, MEASURE.published);
  }

  attempted(
    actionId: number,
    subscriptionId: number,
    { ending, durationMs, latencyMs, statusCode, errorCode }: AttemptResult,
    nowMs: number,
  ): void {
    const add = (measure: number, error?: string): void =>
      this.#add(nowMs, actionId, subscriptionId, measure, error);
    add(MEASURE.attempt + bucketOf(durationMs));
    if (ending === "delivered") {
      add(MEASURE.delivered);
      if (latencyMs !== undefined) add(MEASURE.latency + bucketOf(latencyMs));
    } else {
      add(MEASURE.failedAttempts, errorCode ?? String(statusCode));
    }
  }

  write(sql: Sql): void {
    if (this.#counts.size === 0) return;
    sql.run(
      addingTo(`SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
        FROM json_each(?) WHERE true`),
      JSON.stringify([...this.#counts.values()]),
    );
  }
}

export function countPublished(
  sql: Sql,
  batches: readonly EventBatch[],
  outcomes: readonly (readonly WireRecordOutcome[])[],
): void {
  const counts = new StatsCounts();
  for (const [index, { events }] of batches.entries()) {
    for (const [place, outcome] of outcomes[index]!.entries()) {
      if (outcome.kind === "recorded") counts.published(events[place]!.actionId, outcome.timestampedMs);
    }
  }
  counts.write(sql);
}

/** Counts deliveries that failed for good. */
export function countFailed(sql: Sql, deliveryIds: readonly number[], nowMs: number): void {
  if (deliveryIds.length === 0) return;
  sql.run(
    addingTo(`SELECT ?, event.action_id, delivery.subscription_id, ${MEASURE.failed}, count(*), NULL
      FROM json_each(?) AS failed CROSS JOIN delivery ON delivery.rowid = failed.value
      CROSS JOIN event ON event.rowid = delivery.event_id WHERE true GROUP BY 2, 3`),
    tenSecondsOf(nowMs),
    JSON.stringify(deliveryIds),
  );
}

export function countRefused(sql: Sql, counts: readonly RefusedCount[]): void {
  sql.run(
    addingTo(`SELECT value ->> 0, coalesce((SELECT rowid FROM action WHERE action = value ->> 1), 0), 0,
      ${MEASURE.refused}, value ->> 2, NULL FROM json_each(?) WHERE true`),
    JSON.stringify(counts.map(({ atMs, action, count }) => [tenSecondsOf(atMs), action, count])),
  );
}
