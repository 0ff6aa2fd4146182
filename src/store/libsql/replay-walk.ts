import type { ReplaySelection } from "../../domain/replay.ts";
import type { EventRange, ReplayPlan } from "../replays.ts";
import type { Sql } from "./sql.ts";

/** An event of the walk and its delivery, where there is one. */
export interface Chosen {
  readonly event: number;
  readonly delivery: number | null;
}

/** Events looked at in one go: a millisecond or so. */
const WINDOW = 4_000;
/** Where most are to be sent, so many for each that is asked for will do. */
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
const IS_FAILED = "d.subscription_id = ?1 AND d.state = 3 AND d.event_id BETWEEN ?3 AND ?4";

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
      WHERE ${OF_ACTION} AND (d.rowid IS NULL OR d.state IN (2, 3, 4)) ORDER BY e.rowid`,
  },
};

type Walked = Pick<ReplayPlan, "subscription" | "actionId" | "selection">;

/** Chosen of a range, and how far it was looked at for them. */
interface Search {
  readonly chosen: readonly Chosen[];
  readonly passed: number;
}

/** The first `most` of the range that are to be sent, or those among the events looked at in one go. */
export function chooseNext(sql: Sql, plan: Walked, range: EventRange, most: number): Search {
  const narrow = searched(sql, plan, range, { most, width: Math.min(NARROW * most, WINDOW) });
  const isEnough = narrow.chosen.length === most || narrow.passed === range.high;
  return isEnough ? narrow : searched(sql, plan, range, { most, width: WINDOW });
}

function searched(
  sql: Sql,
  plan: Walked,
  range: EventRange,
  { most, width }: { readonly most: number; readonly width: number },
): Search {
  const high = windowEnd(sql, plan, range, width);
  const chosen = choose(sql, plan, { low: range.low, high }, most);
  const passed = chosen.length < most ? high : (chosen.at(-1)?.event ?? high);
  return { chosen, passed };
}

/** Where the next window ends: at the end of the range, or so far that it holds `width` events. */
export function windowEnd(
  sql: Sql,
  { subscription, actionId, selection }: Walked,
  { low, high }: EventRange,
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
  { low, high }: EventRange,
  most: number,
): readonly Chosen[] {
  const { chosen } = WALKS[selection];
  return sql.rows<Chosen>(`${chosen} LIMIT ?5`, subscription, actionId, low, high, most);
}

export function countChosen(
  sql: Sql,
  { subscription, actionId, selection }: Walked,
  { low, high }: EventRange,
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

/** What is left of the ranges behind an event of the first one. */
export function behind(ranges: readonly EventRange[], passed: number): readonly EventRange[] {
  const [first, ...rest] = ranges;
  if (first === undefined || passed >= first.high) return rest;
  return [{ low: passed + 1, high: first.high }, ...rest];
}
