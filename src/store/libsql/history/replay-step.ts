import type { ReplaySelection } from "../../../domain/replay.ts";
import { loadLastIds } from "../events/record.ts";
import { type WithServiceEvents, recordReplayEvent } from "../events/service-events.ts";
import { CLOCK_TOLERANCE_MS, insertClockSteps, type RowidRange, idRangesOf } from "../events/timeline.ts";
import type { ReplayProgress, ReplayRequest, ReplayStep } from "../../replays.ts";
import type { Steps } from "../../../runtime/yielding.ts";
import { DELIVERY_STATE, NORMAL } from "../queue/delivery-state.ts";
import { isRowid, type Sql } from "../thread/sql.ts";
import { findReplay, loadRunning, type RangePlan } from "./replays.ts";

export function advanceReplay(sql: Sql, id: number, step: ReplayStep): WithServiceEvents<ReplayProgress> {
  const running = loadRunning(sql, id)[0];
  if (running === undefined) return withoutEvents({ queued: 0, state: "ended" });
  if (step.total !== undefined) sql.run("UPDATE replay SET total = ? WHERE rowid = ?", step.total, id);
  const { plan } = running;
  const [range] = plan.scope;
  if (range === undefined) {
    sql.run("UPDATE replay SET status = 'done', finished_ms = ? WHERE rowid = ?", step.nowMs, id);
    const serviceEvents = recordReplayEvent(sql, findReplay(sql, id), step.nowMs);
    return { answer: { queued: 0, state: "ended" }, serviceEvents };
  }
  if (!running.isActive) return withoutEvents({ queued: 0, state: "paused" });
  const capacity = capacityOf(sql, plan.subscription, step);
  if (capacity === 0) return withoutEvents({ queued: 0, state: "crowded" });

  const { chosen, passed } = chooseNext(sql, plan, range, capacity);
  makeDue(sql, plan.subscription, chosen, step.nowMs);
  sql.run(
    "UPDATE replay SET ranges = ?, queued = queued + ? WHERE rowid = ?",
    JSON.stringify(rangesAfterEvent(plan.scope, passed).map(({ low, high: end }) => [low, end])),
    chosen.length,
    id,
  );
  return withoutEvents({ queued: chosen.length, state: "going" });
}

function withoutEvents(answer: ReplayProgress): WithServiceEvents<ReplayProgress> {
  return { answer, serviceEvents: undefined };
}

/**
 * How many deliveries may be made due now: none before half of the most that may be are sent, as the next few steps would
 * find no room. Both counts end where they are enough.
 */
function capacityOf(
  sql: Sql,
  subscription: number,
  { nowMs, most, mostDue, mostUnfinished }: ReplayStep,
): number {
  const { due, unfinished } = sql.first<{ due: number; unfinished: number }>(
    `SELECT
        (SELECT count(*) FROM (SELECT 1 FROM delivery INDEXED BY delivery_due
          WHERE subscription_id = ?1 AND due_ms IS NOT NULL
            AND (priority, due_ms) <= (${NORMAL}, iif((SELECT ordered FROM subscription WHERE rowid = ?1), ?5, ?2))
          LIMIT ?3)) AS due,
        (SELECT count(*) FROM (SELECT 1 FROM delivery INDEXED BY delivery_due
          WHERE subscription_id = ?1 AND due_ms IS NOT NULL LIMIT ?4)) AS unfinished`,
    subscription,
    nowMs,
    mostDue,
    mostUnfinished,
    // What is in an order is due whatever the clock says.
    Number.MAX_SAFE_INTEGER,
  )!;
  return due > mostDue / 2 ? 0 : Math.min(most, mostDue - due, mostUnfinished - unfinished);
}

function makeDue(sql: Sql, subscription: number, chosen: readonly Candidate[], nowMs: number): void {
  const again = chosen.flatMap(({ delivery }) => (delivery === null ? [] : [delivery]));
  const missing = chosen.flatMap(({ event, delivery }) => (delivery === null ? [event] : []));
  insertReplayDeliveries(sql, subscription, missing, nowMs);
  if (again.length === 0) return;
  sql.run(
    `UPDATE delivery SET state = ${DELIVERY_STATE.pending}, failures = 0, finished_ms = NULL, priority = ${NORMAL}, due_ms = ?2,
        sequence = iif((SELECT ordered FROM subscription WHERE rowid = ?3), event_id, NULL)
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

/** Events looked at in one go: a millisecond or so. */
const WINDOW = 4_000;
/** Where nearly all are to be sent, so many for each requested one will do. */
const NARROW = 4;

interface Walk {
  /** The events to look at, in their order: ?1 subscription, ?2 action, from ?3 to ?4. */
  readonly candidates: string;
  /** Those to be sent, likewise. */
  readonly chosen: string;
}

const EVENTS = `FROM event AS e INDEXED BY event_action`;
const OF_ACTION = `e.action_id = ?2 AND e.rowid BETWEEN ?3 AND ?4`;
const OF_SUBSCRIPTION = "d.event_id = e.rowid AND d.subscription_id = ?1";
const FAILED = `FROM delivery AS d INDEXED BY delivery_failed_event`;
const IS_FAILED = `d.subscription_id = ?1 AND d.state = ${DELIVERY_STATE.failed} AND d.event_id BETWEEN ?3 AND ?4`;

const WALKS: Readonly<Record<ReplaySelection, Walk>> = {
  failed: {
    candidates: `SELECT d.event_id AS event ${FAILED} WHERE ${IS_FAILED} ORDER BY d.event_id`,
    // Joined, the engine would leave the upper bound of the window out and go on to the end of the index.
    chosen: `SELECT d.event_id AS event, d.rowid AS delivery ${FAILED} WHERE ${IS_FAILED}
      AND EXISTS (SELECT 1 ${EVENTS} WHERE e.action_id = ?2 AND e.rowid = d.event_id) ORDER BY d.event_id`,
  },
  missed: {
    candidates: `SELECT e.rowid AS event ${EVENTS} WHERE ${OF_ACTION} ORDER BY e.rowid`,
    chosen: `SELECT e.rowid AS event, NULL AS delivery ${EVENTS}
      WHERE ${OF_ACTION} AND NOT EXISTS (SELECT 1 FROM delivery AS d WHERE ${OF_SUBSCRIPTION}) ORDER BY e.rowid`,
  },
  all: {
    candidates: `SELECT e.rowid AS event ${EVENTS} WHERE ${OF_ACTION} ORDER BY e.rowid`,
    chosen: `SELECT e.rowid AS event, d.rowid AS delivery ${EVENTS}
      LEFT JOIN delivery AS d ON ${OF_SUBSCRIPTION}
      WHERE ${OF_ACTION} AND (d.rowid IS NULL OR d.state <> ${DELIVERY_STATE.pending}) ORDER BY e.rowid`,
  },
};

type Walked = Pick<RangePlan, "subscription" | "actionId" | "selection">;

/** Chosen of a range, and how far it was looked at for them. */
interface Search {
  readonly chosen: readonly Candidate[];
  readonly passed: number;
}

/** The first `most` of the range that are to be sent, or those among the events looked at in one go. */
function chooseNext(sql: Sql, plan: Walked, range: RowidRange, most: number): Search {
  const narrow = searched(sql, plan, range, { most, width: Math.min(NARROW * most, WINDOW) });
  const isEnough = narrow.chosen.length === most || narrow.passed === range.high;
  return isEnough ? narrow : searched(sql, plan, range, { most, width: WINDOW });
}

function searched(
  sql: Sql,
  plan: Walked,
  range: RowidRange,
  { most, width }: { readonly most: number; readonly width: number },
): Search {
  const high = windowEnd(sql, plan, range, width);
  const chosen = choose(sql, plan, { low: range.low, high }, most);
  const passed = chosen.length < most ? high : (chosen.at(-1)?.event ?? high);
  return { chosen, passed };
}

/** Where the next window ends: at the end of the range, or so far that it holds `width` events. */
function windowEnd(
  sql: Sql,
  { subscription, actionId, selection }: Walked,
  { low, high }: RowidRange,
  width = WINDOW,
): number {
  const last = sql.first<{ event: number }>(
    `${WALKS[selection].candidates} LIMIT 1 OFFSET ?5`,
    subscription,
    actionId,
    low,
    high,
    width - 1,
  );
  return last?.event ?? high;
}

function choose(
  sql: Sql,
  { subscription, actionId, selection }: Walked,
  { low, high }: RowidRange,
  most: number,
): readonly Candidate[] {
  const { chosen } = WALKS[selection];
  return sql.rows<Candidate>(`${chosen} LIMIT ?5`, subscription, actionId, low, high, most);
}

function countChosen(
  sql: Sql,
  { subscription, actionId, selection }: Walked,
  { low, high }: RowidRange,
): number {
  const { chosen } = WALKS[selection];
  return sql.first<{ count: number }>(
    `SELECT count(*) AS count FROM (${chosen})`,
    subscription,
    actionId,
    low,
    high,
  )!.count;
}

/** The rest of the ranges after an event of the first one. */
function rangesAfterEvent(ranges: readonly RowidRange[], passed: number): readonly RowidRange[] {
  const [first, ...rest] = ranges;
  if (first === undefined || passed >= first.high) return rest;
  return [{ low: passed + 1, high: first.high }, ...rest];
}

/** Counted in one answer: a tenth of a second of the store's time, in small steps. */
const WINDOWS = 100;

export function* planReplay(sql: Sql, request: ReplayRequest): Steps<RangePlan | undefined> {
  const { subscription, fromMs, toMs } = request;
  if (!isRowid(subscription)) return undefined;
  const row = sql.first<{ action_id: number }>(
    "SELECT action_id FROM subscription WHERE rowid = ? AND deleted_ms IS NULL",
    subscription,
  );
  if (row === undefined) return undefined;
  return { ...request, actionId: row.action_id, scope: yield* idRangesOf(sql, "event", fromMs, toMs) };
}

export function* countReplay(
  sql: Sql,
  plan: RangePlan,
): Steps<{ count: number; rest: readonly RowidRange[] }> {
  let rest = plan.scope;
  let count = 0;
  for (let windows = 0; windows < WINDOWS; windows += 1) {
    const [range] = rest;
    if (range === undefined) break;
    const high = windowEnd(sql, plan, range);
    count += countChosen(sql, plan, { low: range.low, high });
    rest = rangesAfterEvent(rest, high);
    yield;
  }
  return { count, rest };
}

/**
 * Makes deliveries of events that were published before. They are created now, not when their events were, so that the
 * rowids of deliveries go on rising with their times.
 */
function insertReplayDeliveries(
  sql: Sql,
  subscriptionId: number,
  eventIds: readonly number[],
  nowMs: number,
): void {
  if (eventIds.length === 0) return;
  const { event, delivery, lastMs } = loadLastIds(sql);
  const isSetBack = nowMs < lastMs - CLOCK_TOLERANCE_MS;
  if (isSetBack) insertClockSteps(sql, [{ event: event + 1, delivery: delivery + 1, noticedMs: nowMs }]);
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
