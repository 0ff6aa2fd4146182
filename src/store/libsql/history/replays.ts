import type { Replay, ReplayStatus } from "../../../domain/replay.ts";
import { recordServiceEvents } from "../events/service-events.ts";
import type { RowidRange } from "../../events.ts";
import type { ReplayPlan, ReplaySelector, RunningReplay } from "../../history.ts";
import { toIso } from "../../../runtime/clock.ts";
import { checkReplayStart, isToBeCancelled, replayCounts } from "../../rules/replays.ts";
import { isoOrNull, parseStored, type StoredRecord } from "../stored-record.ts";
import { isRowid, type Sql, type SqlValue } from "../thread/sql.ts";
import type { Work } from "../thread/operation.ts";

interface ReplayRow extends StoredRecord<
  Omit<Replay, "skipped">,
  "from" | "to" | "timestamped" | "finished_at"
> {
  /** The ranges that the replay has still to go through, as JSON. */
  readonly ranges: string;
  readonly active: number;
}

const SELECT_REPLAY = `
  SELECT r.rowid AS rowid, r.subscription_id, s.application, s.subscription, r.action, r.selection, r.from_ms AS "from",
    r.to_ms AS "to", r.status, r.reason, r.total, r.queued, r.created_ms AS timestamped, r.finished_ms AS finished_at,
    r.ranges, s.active
  FROM replay AS r
  CROSS JOIN subscription AS s ON s.rowid = r.subscription_id`;

export function startReplay(sql: Sql, plan: ReplayPlan, nowMs: number): Replay | undefined {
  const { subscription, action, selection, fromMs, toMs = nowMs, scope } = plan;
  const current = boundAction(sql, subscription);
  if (current === undefined) return undefined;
  checkReplayStart(plan, current, loadRunning(sql, "r.subscription_id = ?", subscription)[0]);
  const id = sql.value<number>(
    `INSERT INTO replay (subscription_id, action, selection, from_ms, to_ms, ranges, created_ms)
      VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING rowid AS id`,
    subscription,
    action,
    selection,
    fromMs,
    toMs,
    rangesToJson(scope),
    nowMs,
  );
  if (selection === "waiting") {
    sql.run("UPDATE subscription SET slowed_until_ms = NULL WHERE rowid = ?", subscription);
  }
  return findReplay(sql, id);
}

/** Answers the action of a subscription that was not deleted. */
export function boundAction(sql: Sql, subscription: number): string | undefined {
  if (!isRowid(subscription)) return undefined;
  return sql.value("SELECT action FROM subscription WHERE rowid = ? AND deleted_ms IS NULL", subscription);
}

export function rangesToJson(ranges: readonly RowidRange[]): string {
  return JSON.stringify(ranges.map(({ low, high }) => [low, high]));
}

export function findReplay(sql: Sql, id: number): Replay | undefined {
  if (!isRowid(id)) return undefined;
  const row = sql.first<ReplayRow>(`${SELECT_REPLAY} WHERE r.rowid = ?`, id);
  return row === undefined ? undefined : replayOf(row);
}

/** Lists replays. It looks at all of them: there are few, so that an index would cost more. */
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

export function cancelReplay(work: Work, id: number, nowMs: number): Replay | undefined {
  const replay = findReplay(work, id);
  if (replay === undefined || !isToBeCancelled(replay)) return replay;
  const endedReplay = endReplay(work, id, "cancelled", null, nowMs);
  recordServiceEvents(work, { endedReplay }, nowMs);
  return endedReplay;
}

/** Ends the running replay of a subscription, if there is one. */
export function endRunning(
  sql: Sql,
  subscription: number,
  status: "cancelled" | "failed",
  reason: string,
  nowMs: number,
): Replay | undefined {
  const [running] = loadRunning(sql, "r.subscription_id = ?", subscription);
  return running && endReplay(sql, running.rowid, status, reason, nowMs);
}

/** Ends a replay that runs; answers it. */
export function endReplay(
  sql: Sql,
  id: number,
  status: Exclude<ReplayStatus, "running">,
  reason: string | null,
  nowMs: number,
): Replay {
  const update = "UPDATE replay SET status = ?, reason = ?, finished_ms = ? WHERE rowid = ?";
  sql.run(update, status, reason, nowMs, id);
  return findReplay(sql, id)!;
}

export function runningReplays(sql: Sql): readonly RunningReplay[] {
  return loadRunning(sql, "TRUE").map(({ rowid, plan, total }) => ({ rowid, plan, total }));
}

/** @param condition on the replay `r`, with its values */
export function loadRunning(
  sql: Sql,
  condition: string,
  ...values: SqlValue[]
): readonly (RunningReplay & { isActive: boolean })[] {
  const rows = sql.rows<ReplayRow>(`${SELECT_REPLAY} WHERE r.status = 'running' AND ${condition}`, ...values);
  return rows.map((row) => ({
    rowid: row.rowid,
    plan: {
      subscription: row.subscription_id,
      action: row.action,
      selection: row.selection,
      fromMs: row.from,
      toMs: row.to,
      scope: (parseStored(row.ranges) as [number, number][]).map(([low, high]) => ({ low, high })),
    },
    total: row.total,
    isActive: row.active === 1,
  }));
}

function replayOf({ timestamped, finished_at, ranges: _ranges, active: _active, ...row }: ReplayRow): Replay {
  return {
    ...row,
    from: toIso(row.from),
    to: toIso(row.to),
    ...replayCounts(row),
    timestamped: toIso(timestamped),
    finished_at: isoOrNull(finished_at),
  };
}
