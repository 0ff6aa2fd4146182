import type { Delivery } from "../../domain/delivery.ts";
import type { DeliverySelection } from "../queue.ts";
import {
  STATS_SPANS,
  type StatsSteps,
  type StatsTotals,
  type StoredStep,
  type StoredTotal,
  type ReplayPlan,
} from "../history.ts";
import type { OPERATIONS } from "./operations.ts";
import type { ThreadCalls } from "./thread/thread-calls.ts";

// Reads that may look at very many rows ask for one part after the other, so that other reads get their turn in between, and
// the log is free to restart.

type OperationMethods = ThreadCalls<typeof OPERATIONS>["methods"];

/** One call adds up so many spans of figures. */
const ADDED_SPANS = 50;

export async function listAllDeliveries(
  { list }: OperationMethods["queue"],
  query: DeliverySelection,
): Promise<readonly Delivery[]> {
  const all: Delivery[] = [];
  for (let rest = query; ;) {
    const { deliveries, after } = await list(rest);
    all.push(...deliveries);
    if (after === undefined) return all;
    rest = { ...query, after, limit: query.limit - all.length };
  }
}

/** @param signal ends it before the next part; rejects with its reason */
export async function countWholeReplay(
  { count: countNext }: OperationMethods["replays"],
  plan: ReplayPlan,
  signal?: AbortSignal,
): Promise<number> {
  let total = 0;
  for (let { scope } = plan; scope.length > 0;) {
    signal?.throwIfAborted();
    const { count, rest } = await countNext({ ...plan, scope });
    total += count;
    scope = rest;
  }
  return total;
}

export async function readAllSteps(
  { steps }: OperationMethods["stats"],
  query: StatsSteps,
): Promise<readonly StoredStep[]> {
  const { fromMs, toMs, stepMs, span } = query;
  const stepsAtOnce = Math.ceil((ADDED_SPANS * STATS_SPANS[span]) / stepMs);
  const all: StoredStep[] = [];
  for (let partMs = fromMs; partMs < toMs;) {
    // Each part ends with a step, so that none is in two.
    const endMs = Math.min(toMs, (Math.floor(partMs / stepMs) + stepsAtOnce) * stepMs);
    all.push(...(await steps({ ...query, fromMs: partMs, toMs: endMs })));
    partMs = endMs;
  }
  return all;
}

export async function readAllTotals(
  { totals }: OperationMethods["stats"],
  query: StatsTotals,
): Promise<readonly StoredTotal[]> {
  const all: StoredTotal[] = [];
  for (let after: number | undefined = 0; after !== undefined;) {
    const part: Awaited<ReturnType<typeof totals>> = await totals(query, after);
    all.push(...part.totals);
    ({ after } = part);
  }
  return all;
}
