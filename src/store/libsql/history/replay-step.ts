import type { ReplaySelection } from "../../../domain/replay.ts";
import { CLOCK_TOLERANCE_MS } from "../../rules/recording.ts";
import { recordReplayEvent } from "../events/service-events.ts";
import {
  idRangesOf,
  insertSegments,
  rangesAfter,
  type RowidRange,
  loadLastNumbers,
} from "../events/timeline.ts";
import type { ReplayPlan, ReplayProgress, ReplayRequest, ReplayStep } from "../../replays.ts";
import { DELIVERY_STATE, LEASE_OF, NORMAL, UNFINISHED_STATES } from "../queue/delivery-state.ts";
import { keyPointerOf, placeByKey } from "../queue/key-order.ts";
import { isPattern } from "../../../domain/names.ts";
import type { Sql, SqlValue } from "../thread/sql.ts";
import { boundAction, findReplay, loadRunning } from "./replays.ts";
import type { Reported } from "../thread/operation.ts";

export function advanceReplay(sql: Sql, id: number, step: ReplayStep): Reported<ReplayProgress> {
  const [running] = loadRunning(sql, "r.rowid = ?", id);
  if (running === undefined) return { answer: { queued: 0, state: "ended" } };
  if (step.total !== undefined) sql.run("UPDATE replay SET total = ? WHERE rowid = ?", step.total, id);
  const { plan } = running;
  const [range] = plan.scope;
  if (range === undefined) {
    sql.run("UPDATE replay SET status = 'done', finished_ms = ? WHERE rowid = ?", step.nowMs, id);
    const serviceEvents = recordReplayEvent(sql, findReplay(sql, id), step.nowMs);
    return { answer: { queued: 0, state: "ended" }, serviceEvents };
  }
  if (!running.isActive) return { answer: { queued: 0, state: "paused" } };
  const capacity = capacityOf(sql, plan, step);
  if (capacity === 0) return { answer: { queued: 0, state: "saturated" } };

  const { chosen, passed } = chooseNext(sql, plan, range, capacity);
  makeDue(sql, plan, chosen, step.nowMs);
  sql.run(
    "UPDATE replay SET ranges = ?, queued = queued + ? WHERE rowid = ?",
    JSON.stringify(rangesAfter(plan.scope, passed, "asc").map(({ low, high }) => [low, high])),
    chosen.length,
    id,
  );
  return { answer: { queued: chosen.length, state: "running" } };
}

/** How many deliveries may be made due now: none until half of the due ones are sent, as each further step has its cost. */
function capacityOf(
  sql: Sql,
  { subscription, selection }: Pick<ReplayPlan, "subscription" | "selection">,
  { nowMs, maxQueued, maxDue, maxUnfinished }: ReplayStep,
): number {
  const { due, unfinished, ordered } = sql.first<{ due: number; unfinished: number; ordered: number }>(
    `SELECT
        (SELECT ordered FROM subscription WHERE rowid = ?1) AS ordered,
        (SELECT count(*) FROM (SELECT 1 FROM delivery INDEXED BY delivery_due
          WHERE subscription_id = ?1 AND due_ms IS NOT NULL
            AND (priority, due_ms) <= (${NORMAL}, iif((SELECT ordered FROM subscription WHERE rowid = ?1), ?5, ?2))
          LIMIT ?3)) AS due,
        max((SELECT count(*) FROM (SELECT 1 FROM delivery INDEXED BY delivery_due
            WHERE subscription_id = ?1 AND due_ms IS NOT NULL LIMIT ?4)),
          (SELECT count(*) FROM (SELECT 1 FROM delivery INDEXED BY delivery_key
            WHERE subscription_id = ?1 AND key IS NOT NULL AND state IN ${UNFINISHED_STATES} LIMIT ?4))) AS unfinished`,
    subscription,
    nowMs,
    maxDue,
    maxUnfinished,
    // What is in an order is due whatever the clock says.
    Number.MAX_SAFE_INTEGER,
  )!;
  if (selection === "waiting") {
    // All that wait are unfinished already. In an order it is the first of all, which the others wait for.
    if (ordered === 1) return maxQueued;
    return due > maxDue / 2 ? 0 : Math.min(maxQueued, maxDue - due);
  }
  return due > maxDue / 2 ? 0 : Math.min(maxQueued, maxDue - due, maxUnfinished - unfinished);
}

function makeDue(
  sql: Sql,
  { subscription, selection }: Pick<ReplayPlan, "subscription" | "selection">,
  chosen: readonly Candidate[],
  nowMs: number,
): void {
  const again = chosen.flatMap(({ delivery }) => (delivery === null ? [] : [delivery]));
  if (selection === "waiting") return endWaits(sql, again, nowMs);
  const missing = chosen.flatMap(({ event, delivery }) => (delivery === null ? [event] : []));
  insertReplayDeliveries(sql, subscription, missing, nowMs);
  if (again.length > 0) sendAgain(sql, subscription, again, nowMs);
  const pointer = keyPointerOf(sql, subscription);
  if (pointer === null) return;
  const made = sql.rows<{ id: number }>(
    `SELECT d.rowid AS id FROM json_each(?) AS g CROSS JOIN delivery AS d INDEXED BY delivery_event
      WHERE d.event_id = g.value AND d.subscription_id = ?`,
    JSON.stringify(missing),
    subscription,
  );
  placeByKey(sql, subscription, [...again, ...made.map(({ id }) => id)], pointer, nowMs);
}

/** What is due already keeps its place, and what is in an order too. */
function endWaits(sql: Sql, waiting: readonly number[], nowMs: number): void {
  sql.run(
    "UPDATE delivery SET failures = 0, due_ms = min(due_ms, ?2) WHERE rowid IN (SELECT value FROM json_each(?1))",
    JSON.stringify(waiting),
    nowMs,
  );
}

function sendAgain(sql: Sql, subscription: number, again: readonly number[], nowMs: number): void {
  sql.run(
    `UPDATE delivery SET state = ${DELIVERY_STATE.pending}, failures = 0, finished_ms = NULL, priority = ${NORMAL}, due_ms = ?2,
        key = NULL, sequence = iif((SELECT ordered FROM subscription WHERE rowid = ?3), event_id, NULL)
      WHERE rowid IN (SELECT value FROM json_each(?1))`,
    JSON.stringify(again),
    nowMs,
    subscription,
  );
}

/** An event of the walk and its delivery, where there is one. */
interface Candidate {
  readonly event: number;
  readonly delivery: number | null;
}

/** Events looked at together: about a millisecond. */
const WINDOW = 4_000;
/** Where nearly all are sent, so many for each requested one are enough. */
const NARROW = 4;

interface Walk {
  /** The events to look at, in order; its values are those of `valuesOf`. */
  readonly candidates: string;
  /** Those to be sent. */
  readonly chosen: string;
}

/** How the events of a subscription are walked in order. */
interface Events {
  readonly from: string;
  /** True of events to look at. */
  readonly candidate: string;
  /** True of those that the subscription's action stands for. */
  readonly matches: string;
}

const WITHIN = "e.rowid BETWEEN ?3 AND ?4";
/** Of one action, `?2`. */
const OF_ACTION: Events = {
  from: "FROM event AS e INDEXED BY event_action",
  candidate: `e.action_id = ?2 AND ${WITHIN}`,
  matches: "e.action_id = ?2",
};
/** Of a pattern: all events, as several walks of an index would have to be merged. */
const OF_PATTERN: Events = {
  from: "FROM event AS e NOT INDEXED",
  candidate: WITHIN,
  matches: `EXISTS (SELECT 1 FROM binding AS b
    WHERE b.action_id = e.action_id AND b.subscription_id = ?1 AND b.receives = 1)`,
};
const OF_SUBSCRIPTION = "d.event_id = e.rowid AND d.subscription_id = ?1";
const FAILED = `FROM delivery AS d INDEXED BY delivery_failed_event`;
const IS_FAILED = `d.subscription_id = ?1 AND d.state = ${DELIVERY_STATE.failed} AND d.event_id BETWEEN ?3 AND ?4`;

const WAITING = `FROM delivery AS d INDEXED BY delivery_waiting_event
  WHERE d.subscription_id = ?1 AND d.failures > 0 AND d.due_ms IS NOT NULL AND d.event_id BETWEEN ?3 AND ?4`;

const walksOf = ({ from, candidate, matches }: Events): Readonly<Record<ReplaySelection, Walk>> => ({
  failed: {
    candidates: `SELECT d.event_id AS event ${FAILED} WHERE ${IS_FAILED} ORDER BY d.event_id`,
    // With a join the engine would ignore the end of the window, and walk to the end of the index.
    chosen: `SELECT d.event_id AS event, d.rowid AS delivery ${FAILED} WHERE ${IS_FAILED}
      AND EXISTS (SELECT 1 ${from} WHERE ${matches} AND e.rowid = d.event_id) ORDER BY d.event_id`,
  },
  // Also of an action that it had before: they are unfinished, and sent in any case.
  waiting: {
    candidates: `SELECT d.event_id AS event ${WAITING} ORDER BY d.event_id`,
    chosen: `SELECT d.event_id AS event, d.rowid AS delivery ${WAITING} AND NOT ${LEASE_OF("d")} ORDER BY d.event_id`,
  },
  missed: {
    candidates: `SELECT e.rowid AS event ${from} WHERE ${candidate} ORDER BY e.rowid`,
    chosen: `SELECT e.rowid AS event, NULL AS delivery ${from}
      WHERE ${candidate} AND ${matches} AND NOT EXISTS (SELECT 1 FROM delivery AS d WHERE ${OF_SUBSCRIPTION}) ORDER BY e.rowid`,
  },
  all: {
    candidates: `SELECT e.rowid AS event ${from} WHERE ${candidate} ORDER BY e.rowid`,
    chosen: `SELECT e.rowid AS event, d.rowid AS delivery ${from}
      LEFT JOIN delivery AS d ON ${OF_SUBSCRIPTION}
      WHERE ${candidate} AND ${matches} AND (d.rowid IS NULL OR d.state NOT IN ${UNFINISHED_STATES}) ORDER BY e.rowid`,
  },
});
const ACTION_WALKS = walksOf(OF_ACTION);
const PATTERN_WALKS = walksOf(OF_PATTERN);

type Walked = Pick<ReplayPlan, "subscription" | "action" | "selection">;

function walkOf({ action, selection }: Walked): Walk {
  return (isPattern(action) ? PATTERN_WALKS : ACTION_WALKS)[selection];
}

/** For ?1 to ?4 of a walk. */
function valuesOf(sql: Sql, { subscription, action }: Walked, { low, high }: RowidRange): SqlValue[] {
  const found = isPattern(action)
    ? undefined
    : sql.first<{ id: number }>("SELECT rowid AS id FROM action WHERE action = ?", action);
  return [subscription, found?.id ?? null, low, high];
}

/** The first `max` of the range that are to be sent, of those in a window, and how far it looked. */
function chooseNext(
  sql: Sql,
  plan: Walked,
  { low, high }: RowidRange,
  max: number,
): { readonly chosen: readonly Candidate[]; readonly passed: number } {
  let end = low;
  let chosen: readonly Candidate[] = [];
  for (const width of [Math.min(NARROW * max, WINDOW), WINDOW]) {
    end = windowEnd(sql, plan, { low, high }, width);
    const values = valuesOf(sql, plan, { low, high: end });
    chosen = sql.rows(`${walkOf(plan).chosen} LIMIT ?5`, ...values, max);
    if (chosen.length === max || end === high) break;
  }
  return { chosen, passed: chosen.length < max ? end : (chosen.at(-1)?.event ?? end) };
}

/** Where the next window ends: after `width` events, or at the end of the range. */
function windowEnd(sql: Sql, plan: Walked, range: RowidRange, width = WINDOW): number {
  const { candidates } = walkOf(plan);
  const last = sql.first<{ event: number }>(
    `${candidates} LIMIT 1 OFFSET ?5`,
    ...valuesOf(sql, plan, range),
    width - 1,
  );
  return last?.event ?? range.high;
}

/** Windows that one call counts: some ten milliseconds of the thread that reads. */
const MAX_WINDOWS = 10;

export function planReplay(sql: Sql, request: ReplayRequest): ReplayPlan | undefined {
  const { subscription, fromMs, toMs } = request;
  const action = boundAction(sql, subscription);
  if (action === undefined) return undefined;
  return { ...request, action, scope: idRangesOf(sql, "event", fromMs, toMs) };
}

export function countReplay(sql: Sql, plan: ReplayPlan): { count: number; rest: readonly RowidRange[] } {
  let rest = plan.scope;
  let count = 0;
  for (let windows = 0; windows < MAX_WINDOWS; windows += 1) {
    const [range] = rest;
    if (range === undefined) break;
    const high = windowEnd(sql, plan, range);
    count += sql.first<{ count: number }>(
      `SELECT count(*) AS count FROM (${walkOf(plan).chosen})`,
      ...valuesOf(sql, plan, { low: range.low, high }),
    )!.count;
    rest = rangesAfter(rest, high, "asc");
  }
  return { count, rest };
}

/** Makes deliveries of past events. They are created now, so that the rowids of deliveries still rise with their times. */
function insertReplayDeliveries(
  sql: Sql,
  subscriptionId: number,
  eventIds: readonly number[],
  nowMs: number,
): void {
  if (eventIds.length === 0) return;
  const { event, delivery, lastMs } = loadLastNumbers(sql);
  const isSetBack = nowMs < lastMs - CLOCK_TOLERANCE_MS;
  if (isSetBack) insertSegments(sql, [{ event: event + 1, delivery: delivery + 1, noticedMs: nowMs }]);
  sql.run(
    `INSERT INTO delivery (event_id, subscription_id, created_ms, due_ms, sequence)
      SELECT value, s.rowid, ?3, ?4, iif(s.ordered = 1, value, NULL)
      FROM json_each(?1) CROSS JOIN subscription AS s WHERE s.rowid = ?2`,
    JSON.stringify(eventIds),
    subscriptionId,
    isSetBack ? nowMs : Math.max(nowMs, lastMs),
    nowMs,
  );
}
