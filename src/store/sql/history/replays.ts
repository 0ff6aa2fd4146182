import { EvregError } from "../../../domain/error.ts";
import { isPattern } from "../../../domain/names.ts";
import type { Replay, ReplaySelection, ReplayStatus } from "../../../domain/replay.ts";
import { answersOf } from "../../../model/field.ts";
import { REPLAY } from "../../../model/replay.ts";
import type { RowidRange } from "../../events.ts";
import type {
  ReplayPlan,
  ReplayProgress,
  ReplayRequest,
  ReplaySelector,
  ReplayStep,
  RunningReplay,
} from "../../history.ts";
import { idRangesOf, loadLastNumbers, rangesAfter } from "../events/timeline.ts";
import { countUnfinished } from "../queue/backlog.ts";
import { DELIVERY_STATE, LEASE_OF, PENDING_OF, UNFINISHED_STATES } from "../queue/delivery-state.ts";
import { placeByKey } from "../queue/key-order.ts";
import type { ReadPart } from "../operation.ts";
import { insertNumbered, parseStored, recordsOf, type Sql, type SqlValue, updateRow } from "../sql.ts";

const recordOf = recordsOf<Replay>(answersOf(REPLAY));

interface ReplayRow extends Omit<Replay, "from" | "to"> {
  readonly from: number;
  readonly to: number;
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

export async function startReplay(
  sql: Sql,
  request: ReplayRequest,
  nowMs: number,
): Promise<Replay | undefined> {
  const plan = await planOf(sql, request);
  if (plan === undefined) return undefined;
  const { subscription, action, selection, fromMs, toMs = nowMs, scope } = plan;
  const [running] = await loadRunning(sql, "r.subscription_id = ?", subscription);
  if (running !== undefined) {
    const { rowid } = running;
    const message = `Replay ${rowid} of subscription ${subscription} still runs: wait for its end, or cancel it.`;
    throw new EvregError("conflict", message, { rowid, subscription });
  }
  const id = await insertNumbered(sql, "replay", {
    subscription_id: subscription,
    action,
    selection,
    from_ms: fromMs,
    to_ms: toMs,
    ranges: rangesToJson(scope),
    created_ms: nowMs,
  });
  if (selection === "waiting") await updateRow(sql, "subscription", subscription, { slowed_until_ms: null });
  return await findReplay(sql, id);
}

/** Answers what a replay would go through; `undefined` where there is no such subscription. */
async function planOf(sql: Sql, request: ReplayRequest): Promise<ReplayPlan | undefined> {
  const { subscription, fromMs, toMs } = request;
  const action = await sql.value<string | undefined>(
    "SELECT action FROM subscription WHERE rowid = ? AND deleted_ms IS NULL",
    subscription,
  );
  return action === undefined
    ? undefined
    : { ...request, action, scope: await idRangesOf(sql, "event", fromMs, toMs) };
}

function rangesToJson(ranges: readonly RowidRange[]): string {
  return JSON.stringify(ranges.map(({ low, high }) => [low, high]));
}

export async function findReplay(sql: Sql, id: number): Promise<Replay | undefined> {
  const row = await sql.first<ReplayRow>(`${SELECT_REPLAY} WHERE r.rowid = ?`, id);
  return row === undefined ? undefined : replayOf(row);
}

/** Lists replays. It looks at all of them: there are few, so that an index would cost more. */
export async function listReplays(sql: Sql, query: ReplaySelector): Promise<readonly Replay[]> {
  const { subscription, status, applications, limit, after } = query;
  const rows = await sql.rows<ReplayRow>(
    `${SELECT_REPLAY}
      WHERE (?1 IS NULL OR r.subscription_id = ?1) AND (?2 IS NULL OR r.status = ?2)
        AND (?3 IS NULL OR s.application IN list(?3: name text))
        AND (?4 IS NULL OR r.rowid < ?4)
      ORDER BY r.rowid DESC LIMIT ?5`,
    subscription,
    status,
    applications,
    after,
    limit,
  );
  return rows.map(replayOf);
}

export async function cancelReplay(sql: Sql, id: number, nowMs: number): Promise<Replay | undefined> {
  const replay = await findReplay(sql, id);
  if (replay === undefined || replay.status === "cancelled") return replay;
  const { rowid, status } = replay;
  if (status !== "running") {
    const message = `Replay ${rowid} cannot be cancelled: it is ${status} already.`;
    throw new EvregError("conflict", message, { rowid, status });
  }
  await endRunning(sql, replay.subscription_id, "cancelled", null, nowMs);
  return await findReplay(sql, id);
}

/** Ends the replay of a subscription that runs, if there is one: there is no other. */
export async function endRunning(
  sql: Sql,
  subscription: number,
  status: Exclude<ReplayStatus, "running">,
  reason: string | null,
  nowMs: number,
): Promise<void> {
  await sql.run(
    "UPDATE replay SET status = ?2, reason = ?3, finished_ms = ?4 WHERE subscription_id = ?1 AND status = 'running'",
    subscription,
    status,
    reason,
    nowMs,
  );
}

export async function runningReplays(sql: Sql): Promise<readonly RunningReplay[]> {
  return await loadRunning(sql, "TRUE");
}

/** @param condition on the replay `r`, with its values */
async function loadRunning(
  sql: Sql,
  condition: string,
  ...values: SqlValue[]
): Promise<readonly (RunningReplay & { isActive: boolean })[]> {
  const rows = await sql.rows<ReplayRow>(
    `${SELECT_REPLAY} WHERE r.status = 'running' AND ${condition}`,
    ...values,
  );
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

function replayOf(row: ReplayRow): Replay {
  return recordOf({ ...row, ...replayCounts(row) });
}

/** Answers what a replay went through. What failed anew while it ran may be more than was counted at its start. */
export function replayCounts({
  status,
  total,
  queued,
}: Pick<Replay, "status" | "total" | "queued">): Pick<Replay, "total" | "skipped"> {
  if (total === null) return { total, skipped: 0 };
  return { total: Math.max(total, queued), skipped: status === "done" ? Math.max(0, total - queued) : 0 };
}

export async function advanceReplay(sql: Sql, id: number, step: ReplayStep): Promise<ReplayProgress> {
  const [running] = await loadRunning(sql, "r.rowid = ?", id);
  if (running === undefined) return { queued: 0, state: "ended" };
  if (step.total !== undefined) await updateRow(sql, "replay", id, { total: step.total });
  const { plan } = running;
  const [range] = plan.scope;
  if (range === undefined) {
    await endRunning(sql, plan.subscription, "done", null, step.nowMs);
    return { queued: 0, state: "ended" };
  }
  if (!running.isActive) return { queued: 0, state: "paused" };
  const capacity = await capacityOf(sql, plan, step);
  if (capacity === 0) return { queued: 0, state: "saturated" };

  const window = await windowOf(sql, plan, range);
  const chosen = await sql.rows<WalkedEvent>(
    `${walkOf(plan).chosen} LIMIT ?5`,
    ...valuesOf(plan, window),
    capacity,
  );
  const passed = chosen.length < capacity ? window.high : chosen.at(-1)!.event;
  await makeDue(sql, plan, chosen, step.nowMs);
  await sql.run(
    "UPDATE replay SET ranges = ?, queued = queued + ? WHERE rowid = ?",
    rangesToJson(rangesAfter(plan.scope, passed, "asc")),
    chosen.length,
    id,
  );
  return { queued: chosen.length, state: "running" };
}

/**
 * Answers how many deliveries a step may make due beside those that are to be sent: none until half of the due ones are, as each
 * further step has its cost.
 */
export function replayCapacity(
  { due, unfinished }: Readonly<Record<"due" | "unfinished", number>>,
  selection: ReplaySelection,
  { maxQueued, maxDue, maxUnfinished }: Pick<ReplayStep, "maxQueued" | "maxDue" | "maxUnfinished">,
): number {
  if (due > maxDue / 2) return 0;
  // All deliveries that wait are unfinished already.
  const allowed = selection === "waiting" ? Infinity : maxUnfinished - unfinished;
  // More may be unfinished already, above all in an order.
  return Math.max(0, Math.min(maxQueued, maxDue - due, allowed));
}

async function capacityOf(
  sql: Sql,
  { subscription, selection }: ReplayPlan,
  step: ReplayStep,
): Promise<number> {
  const due = await sql.value<number>(
    `SELECT count(*) FROM (SELECT 1 ${PENDING_OF} AND d.due_ms <= ?2 LIMIT ?3) AS due`,
    subscription,
    step.nowMs,
    step.maxDue,
  );
  const { deliveries: unfinished } = await countUnfinished(sql, subscription, step.maxUnfinished);
  return replayCapacity({ due, unfinished }, selection, step);
}

/** Deliveries that are made due get all their retries again. */
async function makeDue(
  sql: Sql,
  { subscription, selection }: ReplayPlan,
  chosen: readonly WalkedEvent[],
  nowMs: number,
): Promise<void> {
  const again = chosen.flatMap(({ delivery }) => (delivery === null ? [] : [delivery]));
  if (selection === "waiting") {
    // What is due already keeps its place.
    const update =
      "UPDATE delivery SET failures = 0, due_ms = min(due_ms, ?2) WHERE rowid IN list(?1: id bigint)";
    await sql.run(update, again, nowMs);
    return;
  }
  await sql.run(
    `UPDATE delivery SET state = ${DELIVERY_STATE.pending}, failures = 0, finished_ms = NULL, due_ms = ?2, key = NULL
      WHERE rowid IN list(?1: id bigint)`,
    again,
    nowMs,
  );
  // Deliveries of past events are created now, so that their rowids still rise with their times.
  const { lastMs } = await loadLastNumbers(sql);
  const made = await sql.column<number>(
    `INSERT INTO delivery (event_id, subscription_id, created_ms, due_ms) SELECT id, ?2, ?3, ?4 FROM list(?1: id bigint) AS events
      RETURNING rowid`,
    chosen.flatMap(({ event, delivery }) => (delivery === null ? [event] : [])),
    subscription,
    Math.max(nowMs, lastMs),
    nowMs,
  );
  await placeByKey(sql, subscription, [...again, ...made], nowMs);
}

/** An event of the walk and its delivery, where there is one. */
interface WalkedEvent {
  readonly event: number;
  readonly delivery: number | null;
}

/** So many rowids of events are looked at together, which takes about a millisecond. */
const WINDOW = 4_000;

/** How a replay walks, in SQL with the values of `valuesOf`. */
interface ReplayWalk {
  /** The first event from `?3` to `?4` that may be one to send. */
  readonly first: string;
  /** The `WalkedEvent`s from `?3` to `?4` that are to be sent, in order. */
  readonly chosen: string;
}

const OF_SUBSCRIPTION = "d.event_id = e.rowid AND d.subscription_id = ?1";
const RECEIVED =
  "EXISTS (SELECT 1 FROM binding AS b WHERE b.action_id = e.action_id AND b.subscription_id = ?1 AND b.receives = 1)";

/** @param looked a condition that the index has, and `chosen` what else is true of those that are to be sent */
function deliveriesBy(index: string, looked: string, chosen: string): ReplayWalk {
  const walked = `FROM delivery AS d INDEXED BY ${index}
    WHERE d.subscription_id = ?1 AND ${looked} AND d.event_id BETWEEN ?3 AND ?4`;
  return {
    first: `SELECT d.event_id ${walked} ORDER BY d.event_id LIMIT 1`,
    chosen: `SELECT d.event_id AS event, d.rowid AS delivery ${walked} AND ${chosen} ORDER BY event`,
  };
}

/** With a pattern all events are walked, as several walks of the index of actions would have to be merged. */
function walkOf({ action, selection }: ReplayPlan): ReplayWalk {
  const ofAction = "INDEXED BY event_action WHERE e.action_id = (SELECT rowid FROM action WHERE action = ?2)";
  const walked = `FROM event AS e ${isPattern(action) ? "NOT INDEXED WHERE TRUE" : ofAction} AND e.rowid BETWEEN ?3 AND ?4`;
  const events = (delivery: string): ReplayWalk => ({
    first: `SELECT e.rowid ${walked} ORDER BY e.rowid LIMIT 1`,
    chosen: `SELECT e.rowid AS event, (SELECT d.rowid FROM delivery AS d WHERE ${OF_SUBSCRIPTION}) AS delivery ${walked}
      AND ${RECEIVED} AND NOT EXISTS (SELECT 1 FROM delivery AS d WHERE ${OF_SUBSCRIPTION} AND ${delivery}) ORDER BY event`,
  });
  const walks: Readonly<Record<ReplaySelection, ReplayWalk>> = {
    // With a join the engine would ignore the end of the window, and walk to the end of the index.
    failed: deliveriesBy(
      "delivery_failed_event",
      `d.state = ${DELIVERY_STATE.failed}`,
      `EXISTS (SELECT 1 FROM event AS e WHERE e.rowid = d.event_id AND ${RECEIVED})`,
    ),
    // Deliveries of an action that it had before count too: they are unfinished, and sent in any case.
    waiting: deliveriesBy(
      "delivery_waiting_event",
      "d.failures > 0 AND d.due_ms IS NOT NULL",
      `NOT ${LEASE_OF("d")}`,
    ),
    missed: events("TRUE"),
    all: events(`d.state IN ${UNFINISHED_STATES}`),
  };
  return walks[selection];
}

/** Answers the values for ?1 to ?4 of a walk. */
function valuesOf({ subscription, action }: ReplayPlan, { low, high }: RowidRange): SqlValue[] {
  return [subscription, action, low, high];
}

/**
 * The rowids of the range that are looked at next. What comes before the first event that may be one to send is passed over:
 * those of others may be millions, and numbers that a restore has skipped even more.
 */
async function windowOf(sql: Sql, plan: ReplayPlan, range: RowidRange): Promise<RowidRange> {
  const first = await sql.value<number | undefined>(walkOf(plan).first, ...valuesOf(plan, range));
  const { low, high } = range;
  return { low: first ?? low, high: Math.min(high, (first ?? high) + WINDOW - 1) };
}

export async function countReplay(
  sql: Sql,
  query: ReplayRequest | ReplayPlan,
): Promise<ReadPart<number, ReplayRequest | ReplayPlan>> {
  const plan = "scope" in query ? query : await planOf(sql, query);
  const [range] = plan?.scope ?? [];
  if (plan === undefined || range === undefined) return { items: [] };
  const window = await windowOf(sql, plan, range);
  const chosen = `SELECT count(*) FROM (${walkOf(plan).chosen}) AS chosen`;
  const count = await sql.value<number>(chosen, ...valuesOf(plan, window));
  return { items: [count], rest: { ...plan, scope: rangesAfter(plan.scope, window.high, "asc") } };
}
