import { EvregError } from "../../domain/error.ts";
import type { Replay, ReplaySelection } from "../../domain/replay.ts";
import type { ReplayStep } from "../history.ts";

/** @throws EvregError `conflict` where another replay of the subscription runs */
export function checkNoneRuns(subscription: number, running: Pick<Replay, "rowid"> | undefined): void {
  if (running === undefined) return;
  const { rowid } = running;
  const message = `Replay ${rowid} of subscription ${subscription} still runs: wait for its end, or cancel it.`;
  throw new EvregError("conflict", message, { rowid, subscription });
}

/**
 * Whether a replay is to be cancelled, or is cancelled already.
 * @throws EvregError `conflict` for one that has ended otherwise
 */
export function isToBeCancelled({ rowid, status }: Pick<Replay, "rowid" | "status">): boolean {
  if (status === "running" || status === "cancelled") return status === "running";
  throw new EvregError("conflict", `Replay ${rowid} cannot be cancelled: it is ${status} already.`, {
    rowid,
    status,
  });
}

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
