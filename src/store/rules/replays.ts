import type { Replay, ReplaySelection } from "../../domain/replay.ts";
import type { ReplayStep } from "../history.ts";

/** The deliveries of a subscription that are to be sent, each counted up to the limit of the step. */
interface QueuedDeliveries {
  readonly due: number;
  readonly unfinished: number;
}

/**
 * Answers how many deliveries a step may make due: none until half of the due ones are sent, as each further step has its cost.
 */
export function replayCapacity(
  { due, unfinished }: QueuedDeliveries,
  selection: ReplaySelection,
  { maxQueued, maxDue, maxUnfinished }: Pick<ReplayStep, "maxQueued" | "maxDue" | "maxUnfinished">,
): number {
  if (due > maxDue / 2) return 0;
  // All deliveries that wait are unfinished already.
  const allowed = selection === "waiting" ? Infinity : maxUnfinished - unfinished;
  return Math.min(maxQueued, maxDue - due, allowed);
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
