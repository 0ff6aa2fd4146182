import type { ReplayProgress, ReplayStep } from "../replays.ts";
import { insertLateDeliveries } from "./late-deliveries.ts";
import { behind, type Chosen, chooseNext } from "./replay-walk.ts";
import { findReplay, loadRunning } from "./replays.ts";
import { type Telling, tellReplay } from "./service-events.ts";
import type { Sql } from "./sql.ts";

export function stepReplay(sql: Sql, id: number, step: ReplayStep): Telling<ReplayProgress> {
  const running = loadRunning(sql, id)[0];
  if (running === undefined) return untold({ queued: 0, state: "ended" });
  if (step.total !== undefined) sql.run("UPDATE replay SET total = ? WHERE rowid = ?", step.total, id);
  const { plan } = running;
  const [range] = plan.ranges;
  if (range === undefined) {
    sql.run("UPDATE replay SET status = 'done', finished_ms = ? WHERE rowid = ?", step.nowMs, id);
    const told = tellReplay(sql, findReplay(sql, id), step.nowMs);
    return { answer: { queued: 0, state: "ended" }, told };
  }
  if (!running.isActive) return untold({ queued: 0, state: "paused" });
  const room = roomOf(sql, plan.subscription, step);
  if (room === 0) return untold({ queued: 0, state: "crowded" });

  const { chosen, passed } = chooseNext(sql, plan, range, room);
  makeDue(sql, plan.subscription, chosen, step.nowMs);
  sql.run(
    "UPDATE replay SET ranges = ?, queued = queued + ? WHERE rowid = ?",
    JSON.stringify(behind(plan.ranges, passed).map(({ low, high: end }) => [low, end])),
    chosen.length,
    id,
  );
  return untold({ queued: chosen.length, state: "going" });
}

function untold(answer: ReplayProgress): Telling<ReplayProgress> {
  return { answer, told: undefined };
}

/**
 * How many deliveries may be made due now: none before half of the most that may be are sent, as the next few steps would
 * find no room. Both counts end where they are enough.
 */
function roomOf(
  sql: Sql,
  subscription: number,
  { nowMs, most, mostDue, mostUnfinished }: ReplayStep,
): number {
  const { due, unfinished } = sql.first<{ due: number; unfinished: number }>(
    `SELECT
        (SELECT count(*) FROM (SELECT 1 FROM delivery INDEXED BY delivery_due
          WHERE subscription_id = ?1 AND due_ms <= iif((SELECT ordered FROM subscription WHERE rowid = ?1), ?5, ?2)
          LIMIT ?3)) AS due,
        (SELECT count(*) FROM (SELECT 1 FROM delivery INDEXED BY delivery_due
          WHERE subscription_id = ?1 AND due_ms IS NOT NULL LIMIT ?4)) AS unfinished`,
    subscription,
    nowMs,
    mostDue,
    mostUnfinished,
    // What has a place instead of a time is due.
    Number.MAX_SAFE_INTEGER,
  )!;
  return due > mostDue / 2 ? 0 : Math.min(most, mostDue - due, mostUnfinished - unfinished);
}

function makeDue(sql: Sql, subscription: number, chosen: readonly Chosen[], nowMs: number): void {
  const again = chosen.flatMap(({ delivery }) => (delivery === null ? [] : [delivery]));
  const missing = chosen.flatMap(({ event, delivery }) => (delivery === null ? [event] : []));
  insertLateDeliveries(sql, subscription, missing, nowMs);
  if (again.length === 0) return;
  sql.run(
    `UPDATE delivery SET state = 0, failures = 0, finished_ms = NULL,
        due_ms = CASE (SELECT ordered FROM subscription WHERE rowid = ?3) WHEN 1 THEN event_id ELSE ?2 END
      WHERE rowid IN (SELECT value FROM json_each(?1))`,
    JSON.stringify(again),
    nowMs,
    subscription,
  );
}
