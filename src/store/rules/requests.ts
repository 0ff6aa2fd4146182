import { type Delivery, statusesBefore } from "../../domain/delivery.ts";
import { EvregError } from "../../domain/error.ts";
import type { Replay, ReplaySelection } from "../../domain/replay.ts";
import type { ReplayStep } from "../history.ts";

// What becomes of what persons ask for: a retry or a skip of a delivery, and a replay.

/** A delivery that a person asks something of. */
export interface RequestedDelivery extends Pick<
  Delivery,
  "rowid" | "status" | "subscription" | "last_error"
> {
  readonly isSubscriptionDeleted: boolean;
  /** Whether its order sends another one before it. */
  readonly isBehind: boolean;
}

const RETRIABLE = statusesBefore("retry requested");
const SKIPPABLE = statusesBefore("skipped");
const BEHIND = "its subscription is ordered, and another delivery goes before it";

/** @throws EvregError `conflict` for a delivery that cannot be made due at once */
export function checkRetry(delivery: RequestedDelivery): void {
  const { status, subscription, isSubscriptionDeleted, isBehind } = delivery;
  if (isSubscriptionDeleted) {
    const why = `its subscription ${subscription} was deleted, so it cannot be sent again`;
    throw conflict(delivery, "retried", why);
  }
  if (RETRIABLE.has(status)) return;
  const sent = isBehind ? BEHIND : "it is on its way already";
  const why = status === "held" ? "reactivate its subscription first" : sent;
  throw conflict(delivery, "retried", `it is ${status}; ${why}`);
}

/** @throws EvregError `conflict` for a delivery that cannot be failed for good */
export function checkSkip(delivery: RequestedDelivery): void {
  const { status, last_error: lastError, isBehind } = delivery;
  if (status === "delivering") {
    throw conflict(delivery, "skipped", "an attempt of it is under way; wait for its result first");
  }
  if (!SKIPPABLE.has(status)) {
    throw conflict(delivery, "skipped", `it is ${status}, so nothing of it is left to be sent`);
  }
  if (lastError !== null) return;
  const why = isBehind ? BEHIND : "only one that failed can be skipped";
  throw conflict(delivery, "skipped", `no attempt of it has failed so far; ${why}`);
}

function conflict(
  { rowid, status }: RequestedDelivery,
  change: "retried" | "skipped",
  why: string,
): EvregError {
  return new EvregError("conflict", `Delivery ${rowid} cannot be ${change}: ${why}.`, { rowid, status });
}

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
