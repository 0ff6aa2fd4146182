import type { EvregError } from "../../domain/error.ts";
import { malformedField } from "../../domain/request.ts";
import {
  floorTo,
  STATS_LIMITS,
  STATS_QUERY,
  STATS_RANGES,
  type StatsBreakdown,
  type StatsQuery,
  type StatsRange,
} from "../../domain/stats/stats.ts";
import type { StatsSelection } from "../../store/history.ts";
import type { Access } from "../auth.ts";
import { checkQuery } from "../requests.ts";

/** Whose figures are asked for, and of which time. */
export interface Selection {
  readonly range: StatsRange;
  readonly stepMs: number;
  /** The start of the first step. */
  readonly fromMs: number;
  readonly nowMs: number;
  readonly steps: number;
  readonly of: StatsSelection;
  readonly by: StatsBreakdown | undefined;
  readonly limit: number;
}

/** @throws EvregError `malformed`, and `forbidden` without any right to read */
export function selectionOf(access: Access, query: StatsQuery, nowMs: number): Selection {
  const applications = access.readable(query.application);
  const { range = "1h", action, subscription, by, limit } = checkQuery(STATS_QUERY, query);
  if (subscription !== undefined && action !== undefined) throw notTogether("subscription", "action");
  if (by === "action" && subscription !== undefined) throw notTogether("by=action", "subscription");
  if (by === "subscription" && action !== undefined) throw notTogether("by=subscription", "action");
  const { lengthMs, stepMs } = STATS_RANGES[range];
  const steps = lengthMs / stepMs;
  return {
    range,
    stepMs,
    steps,
    nowMs,
    fromMs: floorTo(nowMs, stepMs) - (steps - 1) * stepMs,
    of: { applications, action, subscription },
    by,
    limit: limit ?? STATS_LIMITS.rowsDefault,
  };
}

function notTogether(one: string, other: string): EvregError {
  return malformedField(one, `is not given together with ${other}: figures are kept by either alone`, null);
}
