import type { EventRange, ReplayPlan, ReplayRequest } from "../replays.ts";
import type { Steps } from "./read-steps.ts";
import { behind, countChosen, windowEnd } from "./replay-walk.ts";
import type { Sql } from "./sql.ts";
import { isRowid } from "./text.ts";
import { rowidRanges } from "./time-range.ts";

/** Counted in one answer: a tenth of a second of the store's time, in small steps. */
const WINDOWS = 100;

export function* planReplay(sql: Sql, request: ReplayRequest): Steps<ReplayPlan | undefined> {
  const { subscription, fromMs, toMs } = request;
  if (!isRowid(subscription)) return undefined;
  const row = sql.first<{ action_id: number }>(
    "SELECT action_id FROM subscription WHERE rowid = ? AND deleted_ms IS NULL",
    subscription,
  );
  if (row === undefined) return undefined;
  return { ...request, actionId: row.action_id, ranges: yield* rowidRanges(sql, "event", fromMs, toMs) };
}

export function* countReplay(
  sql: Sql,
  plan: ReplayPlan,
): Steps<{ count: number; rest: readonly EventRange[] }> {
  let rest = plan.ranges;
  let count = 0;
  for (let windows = 0; windows < WINDOWS; windows += 1) {
    const [range] = rest;
    if (range === undefined) break;
    const high = windowEnd(sql, plan, range);
    count += countChosen(sql, plan, { low: range.low, high });
    rest = behind(rest, high);
    yield;
  }
  return { count, rest };
}
