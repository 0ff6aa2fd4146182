import { EvregError } from "../../../domain/error.ts";
import type { Replay, ReplaySelection, ReplayStatus } from "../../../domain/replay.ts";
import { type WithServiceEvents, recordReplayEvent } from "../events/service-events.ts";
import type { ServiceEventCounts } from "../../queue.ts";
import type { ReplayPlan, ReplaySelector, RunningReplay } from "../../replays.ts";
import type { RowidRange } from "../events/timeline.ts";
import { toIso } from "../../../runtime/clock.ts";
import { isRowid, parseKept, type Sql } from "../thread/sql.ts";

/** A plan of this store. */
export interface RangePlan extends ReplayPlan {
  /** Rising. */
  readonly scope: readonly RowidRange[];
}

interface ReplayRow {
  readonly id: number;
  readonly subscription_id: number;
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly selection: ReplaySelection;
  readonly from_ms: number;
  readonly to_ms: number;
  readonly status: ReplayStatus;
  readonly reason: string | null;
  readonly total: number | null;
  readonly queued: number;
  readonly created_ms: number;
  readonly finished_ms: number | null;
}

const SELECT_REPLAY = `
  SELECT r.rowid AS id, r.subscription_id, s.application, s.subscription, a.action, r.selection, r.from_ms, r.to_ms,
    r.status, r.reason, r.total, r.queued, r.created_ms, r.finished_ms
  FROM replay AS r
  CROSS JOIN subscription AS s ON s.rowid = r.subscription_id
  CROSS JOIN action AS a ON a.rowid = r.action_id`;

export function startReplay(sql: Sql, plan: RangePlan, nowMs: number): Replay | undefined {
  const { subscription, actionId, selection, fromMs, toMs = nowMs, scope } = plan;
  const now = sql.first<{ action_id: number }>(
    "SELECT action_id FROM subscription WHERE rowid = ? AND deleted_ms IS NULL",
    subscription,
  );
  if (now === undefined) return undefined;
  if (now.action_id !== actionId) {
    throw new EvregError(
      "conflict",
      `Subscription ${subscription} was just bound to another action; look at it, then ask again.`,
      { subscription },
    );
  }
  assertNoneRunning(sql, subscription);
  const { id } = sql.first<{ id: number }>(
    `INSERT INTO replay (subscription_id, action_id, selection, from_ms, to_ms, ranges, created_ms)
      VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING rowid AS id`,
    subscription,
    actionId,
    selection,
    fromMs,
    toMs,
    JSON.stringify(scope.map(({ low, high }) => [low, high])),
    nowMs,
  )!;
  return findReplay(sql, id);
}

export function findReplay(sql: Sql, id: number): Replay | undefined {
  if (!isRowid(id)) return undefined;
  const row = sql.first<ReplayRow>(`${SELECT_REPLAY} WHERE r.rowid = ?`, id);
  return row === undefined ? undefined : replayOf(row);
}

/** Of all there are, as people begin few: a walk through them costs less than an index would. */
export function listReplays(sql: Sql, query: ReplaySelector): readonly Replay[] {
  const { subscription, status, applications, limit, after } = query;
  const rows = sql.rows<ReplayRow>(
    `${SELECT_REPLAY}
      WHERE (?1 IS NULL OR r.subscription_id = ?1) AND (?2 IS NULL OR r.status = ?2)
        AND (?3 IS NULL OR s.application IN (SELECT value FROM json_each(?3)))
        AND (?4 IS NULL OR r.rowid < ?4)
      ORDER BY r.rowid DESC LIMIT ?5`,
    subscription ?? null,
    status ?? null,
    applications === undefined ? null : JSON.stringify(applications),
    after ?? null,
    limit,
  );
  return rows.map(replayOf);
}

export function cancelReplay(sql: Sql, id: number, nowMs: number): WithServiceEvents<Replay | undefined> {
  const found = findReplay(sql, id);
  if (found === undefined || found.status === "cancelled") return { answer: found, serviceEvents: undefined };
  if (found.status !== "running") {
    throw new EvregError("conflict", `Replay ${id} cannot be cancelled: it is ${found.status} already.`, {
      rowid: id,
      status: found.status,
    });
  }
  sql.run("UPDATE replay SET status = 'cancelled', finished_ms = ? WHERE rowid = ?", nowMs, id);
  const cancelled = findReplay(sql, id);
  return { answer: cancelled, serviceEvents: recordReplayEvent(sql, cancelled, nowMs) };
}

/** Ends what runs for a subscription for which it makes no sense any more. */
export function stopRunning(
  sql: Sql,
  subscription: number,
  { status, reason, nowMs }: { status: "cancelled" | "failed"; reason: string; nowMs: number },
): ServiceEventCounts | undefined {
  const ended = sql.first<{ id: number }>(
    `UPDATE replay INDEXED BY replay_running SET status = ?2, reason = ?3, finished_ms = ?4
      WHERE subscription_id = ?1 AND status = 'running' RETURNING rowid AS id`,
    subscription,
    status,
    reason,
    nowMs,
  );
  return ended === undefined ? undefined : recordReplayEvent(sql, findReplay(sql, ended.id), nowMs);
}

export function runningReplays(sql: Sql): readonly RunningReplay[] {
  return loadRunning(sql).map(({ rowid, plan, total }) => ({ rowid, plan, total }));
}

/** Those that run, or the one of this rowid if it does. */
export function loadRunning(
  sql: Sql,
  id?: number,
): readonly (RunningReplay & { plan: RangePlan; isActive: boolean })[] {
  const rows = sql.rows<{
    id: number;
    subscription_id: number;
    action_id: number;
    selection: ReplaySelection;
    from_ms: number;
    to_ms: number;
    ranges: string;
    total: number | null;
    active: number;
  }>(
    `SELECT r.rowid AS id, r.subscription_id, r.action_id, r.selection, r.from_ms, r.to_ms, r.ranges, r.total, s.active
      FROM replay AS r ${id === undefined ? "INDEXED BY replay_running" : ""}
      CROSS JOIN subscription AS s ON s.rowid = r.subscription_id
      WHERE r.status = 'running' AND ${id === undefined ? "TRUE" : "r.rowid = ?"}`,
    ...(id === undefined ? [] : [id]),
  );
  return rows.map((row) => ({
    rowid: row.id,
    plan: {
      subscription: row.subscription_id,
      actionId: row.action_id,
      selection: row.selection,
      fromMs: row.from_ms,
      toMs: row.to_ms,
      scope: (parseKept(row.ranges) as [number, number][]).map(([low, high]) => ({ low, high })),
    },
    total: row.total,
    isActive: row.active === 1,
  }));
}

function assertNoneRunning(sql: Sql, subscription: number): void {
  const other = sql.first<{ id: number }>(
    "SELECT rowid AS id FROM replay INDEXED BY replay_running WHERE subscription_id = ? AND status = 'running'",
    subscription,
  );
  if (other === undefined) return;
  throw new EvregError(
    "conflict",
    `Replay ${other.id} of subscription ${subscription} still runs: wait for its end, or cancel it.`,
    { rowid: other.id, subscription },
  );
}

function replayOf(row: ReplayRow): Replay {
  const skipped = row.status === "done" && row.total !== null ? row.total - row.queued : 0;
  return {
    rowid: row.id,
    subscription_id: row.subscription_id,
    application: row.application,
    subscription: row.subscription,
    action: row.action,
    selection: row.selection,
    from: toIso(row.from_ms),
    to: toIso(row.to_ms),
    status: row.status,
    reason: row.reason,
    total: row.total,
    queued: row.queued,
    // What failed anew while it ran may make it more than was counted.
    skipped: Math.max(0, skipped),
    timestamped: toIso(row.created_ms),
    finished_at: row.finished_ms === null ? null : toIso(row.finished_ms),
  };
}
