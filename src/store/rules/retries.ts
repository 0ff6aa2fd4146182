import { type Delivery, statusesBefore } from "../../domain/delivery.ts";
import { EvregError } from "../../domain/error.ts";

/** A delivery that a person wants to be retried or skipped, with its times as they are stored. */
interface RequestedDelivery extends Pick<Delivery, "rowid" | "status" | "subscription" | "last_error"> {
  readonly due_ms: number | null;
  readonly finished_ms: number | null;
  /** When its subscription was deleted. */
  readonly deleted_ms: number | null;
}

const RETRIABLE = statusesBefore("retry requested");
const SKIPPABLE = statusesBefore("skipped");
const BEHIND = "its subscription is ordered, and another delivery goes before it";

/** @throws EvregError `conflict` for a delivery that cannot be made due at once */
export function checkRetry(delivery: RequestedDelivery): void {
  const { status, subscription, deleted_ms: deletedMs } = delivery;
  if (deletedMs !== null) {
    const why = `its subscription ${subscription} was deleted, so it cannot be sent again`;
    throw conflict(delivery, "retried", why);
  }
  if (RETRIABLE.has(status)) return;
  const sent = isBehind(delivery) ? BEHIND : "it is on its way already";
  const why = status === "held" ? "make its subscription active first" : sent;
  throw conflict(delivery, "retried", `it is ${status}; ${why}`);
}

/** @throws EvregError `conflict` for a delivery that cannot be failed for good */
export function checkSkip(delivery: RequestedDelivery): void {
  const { status, last_error: lastError } = delivery;
  if (status === "delivering") {
    throw conflict(delivery, "skipped", "an attempt of it is under way; wait for its result first");
  }
  if (!SKIPPABLE.has(status)) {
    throw conflict(delivery, "skipped", `it is ${status}, so nothing of it is left to be sent`);
  }
  if (lastError !== null) return;
  const why = isBehind(delivery) ? BEHIND : "only one that failed can be skipped";
  throw conflict(delivery, "skipped", `no attempt of it has failed so far; ${why}`);
}

/** Whether its order sends another one before it. */
function isBehind({ due_ms: dueMs, finished_ms: finishedMs }: RequestedDelivery): boolean {
  return dueMs === null && finishedMs === null;
}

function conflict(
  { rowid, status }: RequestedDelivery,
  change: "retried" | "skipped",
  why: string,
): EvregError {
  return new EvregError("conflict", `Delivery ${rowid} cannot be ${change}: ${why}.`, { rowid, status });
}
