import { EvregError } from "../../../domain/error.ts";
import { isPattern } from "../../../domain/names.ts";
import type { Replay, ReplaySelection, ReplayStatus } from "../../../domain/replay.ts";
import { answersOf } from "../../../model/field.ts";
import { REPLAY } from "../../../model/replay.ts";
import type { RowidRange } from "../../events.ts";
import type { ReplayProgress, ReplayRequest, ReplaySelector, ReplayStep } from "../../history.ts";
import { idRangesOf, loadLastNumbers, rangesAfter } from "../events/timeline.ts";
import { countUnfinished } from "../queue/backlog.ts";
import { DELIVERY_STATE, LEASE_OF, PENDING_OF, UNFINISHED_STATES } from "../queue/delivery-state.ts";
import { placeByKey } from "../queue/key-order.ts";
import type { ReadPart } from "../operation.ts";
import {
  insertNumbered,
  parseStored,
  recordsOf,
  type Sql,
  type SqlValue,
  updateRow,
  walkedBy,
} from "../sql.ts";

const recordOf = recordsOf<Replay>(answersOf(REPLAY));

/** What failed anew while a replay ran may be more than was counted at its start. */
const SELECT_REPLAY = `
  SELECT r.rowid AS rowid, r.subscription_id, s.application, s.subscription, r.action, r.selection, r.from_ms AS "from",
    r.to_ms AS "to", r.status, r.reason, max(r.total, r.queued) AS total, r.queued,
    iif(r.status = 'done', coalesce(max(0, r.total - r.queued), 0), 0) AS skipped, r.created_ms AS timestamped,
    r.finished_ms AS finished_at
  FROM replay AS r
  CROSS JOIN subscription AS s ON s.rowid = r.subscription_id`;

/** What a replay goes through. */
interface ReplayPlan extends Pick<ReplayRequest, "subscription" | "selection"> {
  /** What the subscription is bound to: a name or a pattern. */
  readonly action: string;
  /** The events that are still to be gone through, in rising ranges. */
  readonly scope: readonly RowidRange[];
}

export async function startReplay(
  sql: Sql,
  request: ReplayRequest,
  nowMs: number,
): Promise<Replay | undefined> {
  const { subscription, selection, fromMs, toMs = nowMs } = request;
  const plan = await planOf(sql, request);
  if (plan === undefined) return undefined;
  const running = "SELECT rowid AS rowid FROM replay WHERE subscription_id = ? AND status = 'running'";
  const rowid = await sql.value<number | undefined>(running, subscription);
  if (rowid !== undefined) {
    const message = `Replay ${rowid} of subscription ${subscription} still runs: wait for its end, or cancel it.`;
    throw new EvregError("conflict", message, { rowid, subscription });
  }
  const id = await insertNumbered(sql, "replay", {
    subscription_id: subscription,
    action: plan.action,
    selection,
    from_ms: fromMs,
    to_ms: toMs,
    ranges: rangesToJson(plan.scope),
    created_ms: nowMs,
  });
  if (selection === "waiting") await updateRow(sql, "subscription", subscription, { slowed_until_ms: null });
  return await findReplay(sql, id);
}

/** Answers what a replay would go through; `undefined` where there is no such subscription. */
async function planOf(
  sql: Sql,
  { subscription, selection, fromMs, toMs }: ReplayRequest,
): Promise<ReplayPlan | undefined> {
  const living = "SELECT action FROM subscription WHERE rowid = ? AND deleted_ms IS NULL";
  const action = await sql.value<string | undefined>(living, subscription);
  return action === undefined
    ? undefined
    : { subscription, selection, action, scope: await idRangesOf(sql, "event", fromMs, toMs) };
}

/** Answers what a replay has still to go through; `undefined` where it runs no more. */
async function planOfRunning(
  sql: Sql,
  id: number,
): Promise<(ReplayPlan & { readonly isActive: number }) | undefined> {
  const row = await sql.first<Omit<ReplayPlan, "scope"> & { ranges: string; isActive: number }>(
    `SELECT r.subscription_id AS subscription, r.selection, r.action, r.ranges, s.active AS isActive
      FROM replay AS r CROSS JOIN subscription AS s ON s.rowid = r.subscription_id
      WHERE r.rowid = ? AND r.status = 'running'`,
    id,
  );
  if (row === undefined) return undefined;
  const { ranges, ...plan } = row;
  const scope = (parseStored(ranges) as [number, number][]).map(([low, high]) => ({ low, high }));
  return { ...plan, scope };
}

function rangesToJson(ranges: readonly RowidRange[]): string {
  return JSON.stringify(ranges.map(({ low, high }) => [low, high]));
}

export async function findReplay(sql: Sql, id: number): Promise<Replay | undefined> {
  const row = await sql.first<object>(`${SELECT_REPLAY} WHERE r.rowid = ?`, id);
  return row && recordOf(row);
}

/** Lists replays. It looks at all of them: there are few, so that an index would cost more. */
export async function listReplays(sql: Sql, query: ReplaySelector): Promise<readonly Replay[]> {
  const { subscription, status, applications, limit, after } = query;
  const rows = await sql.rows<object>(
    `${SELECT_REPLAY}
      WHERE (?1 IS NULL OR r.subscription_id = ?1) AND (?2 IS NULL OR r.status = ?2)
        AND (?3 IS NULL OR s.application IN list(?3: name text))
        AND (?4 IS NULL OR r.rowid < ?4)
      ORDER BY r.rowid DESC LIMIT ?5`,
    subscription,
    status,
    applications,
    after,
    limit ?? Number.MAX_SAFE_INTEGER,
  );
  return rows.map(recordOf);
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

export async function advanceReplay(sql: Sql, id: number, step: ReplayStep): Promise<ReplayProgress> {
  const plan = await planOfRunning(sql, id);
  if (plan === undefined) return { queued: 0, state: "ended" };
  if (step.total !== undefined) await updateRow(sql, "replay", id, { total: step.total });
  const [range] = plan.scope;
  if (range === undefined) {
    await endRunning(sql, plan.subscription, "done", null, step.nowMs);
    return { queued: 0, state: "ended" };
  }
  if (plan.isActive !== 1) return { queued: 0, state: "paused" };
  const capacity = await capacityOf(sql, plan, step);
  if (capacity === 0) return { queued: 0, state: "saturated" };

  const walk = walkOf(plan, range);
  const chosen = await sql.rows<WalkedEvent>(`${walk.chosen} LIMIT ?5`, ...walk.values, capacity);
  const passed = chosen.length < capacity ? await endOf(sql, walk, range) : chosen.at(-1)!.event;
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

/** So many events are looked at together, which takes a few milliseconds. */
const WINDOW = 2_000;

/** How a replay walks, in SQL with these values: `?1` to `?4`. */
interface ReplayWalk {
  /** The ids of the next events that are looked at, in order. */
  readonly next: string;
  /** The `WalkedEvent`s among them that are to be sent, in order. */
  readonly chosen: string;
  readonly values: readonly SqlValue[];
}

const RECEIVED = `EXISTS (SELECT 1 FROM event AS e CROSS JOIN binding AS b ON b.action_id = e.action_id
  WHERE e.rowid = next.id AND b.subscription_id = ?1 AND b.receives = 1)`;

/** Which of the events that are looked at are to be sent, by their deliveries `d`. */
const CHOSEN: Readonly<Record<ReplaySelection, string>> = {
  failed: RECEIVED,
  // Deliveries of an action that it had before count too: they are unfinished, and sent in any case.
  waiting: `NOT ${LEASE_OF("d")}`,
  missed: `d.state IS NULL AND ${RECEIVED}`,
  all: `(d.state IS NULL OR d.state NOT IN ${UNFINISHED_STATES}) AND ${RECEIVED}`,
};

function deliveriesBy(index: string, condition: string): string {
  return `SELECT d.event_id AS id FROM delivery AS d INDEXED BY ${index}
    WHERE d.subscription_id = ?1 AND ${condition} AND d.event_id BETWEEN ?3 AND ?4`;
}
const FAILED = deliveriesBy("delivery_failed_event", `d.state = ${DELIVERY_STATE.failed}`);
const WAITING = deliveriesBy("delivery_waiting_event", "d.failures > 0 AND d.due_ms IS NOT NULL");
const OF_ACTION = `SELECT e.rowid AS id FROM event AS e INDEXED BY event_action
  WHERE e.action_id = (SELECT rowid FROM action WHERE action = ?2) AND e.rowid BETWEEN ?3 AND ?4`;
/** With a pattern all events are walked, as several walks of the index of actions would have to be merged. */
const OF_ALL = "SELECT e.rowid AS id FROM event AS e NOT INDEXED WHERE e.rowid BETWEEN ?3 AND ?4";

function walkOf({ subscription, action, selection }: ReplayPlan, { low, high }: RowidRange): ReplayWalk {
  const events = isPattern(action) ? OF_ALL : OF_ACTION;
  const walked = selection === "failed" ? FAILED : selection === "waiting" ? WAITING : events;
  const next = `${walked} ORDER BY id LIMIT ${WINDOW}`;
  const chosen = `SELECT next.id AS event, d.rowid AS delivery FROM (${next}) AS next
    LEFT JOIN delivery AS d INDEXED BY delivery_event ON d.event_id = next.id AND d.subscription_id = ?1
    WHERE ${CHOSEN[selection]} ${walkedBy("next.id")}`;
  return { next, chosen, values: [subscription, action, low, high] };
}

/** Answers up to which rowid of the range the walk has looked. */
async function endOf(sql: Sql, { next, values }: ReplayWalk, { high }: RowidRange): Promise<number> {
  const last = `SELECT max(id) FROM (${next}) AS next HAVING count(*) = ${WINDOW}`;
  return (await sql.value<number | undefined>(last, ...values)) ?? high;
}

type CountQuery = ReplayRequest | { readonly replay: number } | ReplayPlan;

export async function countReplay(sql: Sql, query: CountQuery): Promise<ReadPart<number, CountQuery>> {
  const plan =
    "replay" in query
      ? await planOfRunning(sql, query.replay)
      : "scope" in query
        ? query
        : await planOf(sql, query);
  const [range] = plan?.scope ?? [];
  if (plan === undefined || range === undefined) return { items: [] };
  const walk = walkOf(plan, range);
  const count = await sql.value<number>(`SELECT count(*) FROM (${walk.chosen}) AS chosen`, ...walk.values);
  const scope = rangesAfter(plan.scope, await endOf(sql, walk, range), "asc");
  return { items: [count], rest: { ...plan, scope } };
}
