import { type Delivery, statusesBefore } from "../../domain/delivery.ts";
import { EvregError } from "../../domain/error.ts";

/** A delivery that a person asks something of. */
export interface RequestedDelivery extends Pick<
  Delivery,
  "rowid" | "status" | "subscription" | "last_error"
> {
  readonly isSubscriptionDeleted: boolean;
}

/** The delivery that an order sends before another one. */
export interface DeliveryBefore {
  readonly id: number;
  readonly hasFailed: boolean;
  /** Whether the order is that of their key. */
  readonly isOfKey: boolean;
}

/** Reads what goes before the delivery, which only words about a refusal need. */
type FindBefore = (id: number) => DeliveryBefore | undefined;

const RETRIABLE = statusesBefore("retry requested");
const SKIPPABLE = statusesBefore("skipped");

/** @throws EvregError `conflict` for a delivery that cannot be made due at once */
export function checkRetry(delivery: RequestedDelivery, findBefore: FindBefore): void {
  const { status, subscription, isSubscriptionDeleted } = delivery;
  if (isSubscriptionDeleted) {
    const why = `its subscription ${subscription} was deleted, so it cannot be sent again`;
    throw conflict(delivery, "retried", why);
  }
  if (RETRIABLE.has(status)) return;
  throw conflict(delivery, "retried", `it is ${status}; ${whatItWaitsFor(delivery, findBefore)}`);
}

function whatItWaitsFor({ rowid, status }: RequestedDelivery, findBefore: FindBefore): string {
  if (status === "held") return "reactivate its subscription first";
  const before = status === "pending" ? findBefore(rowid) : undefined;
  return before === undefined ? "it is on its way already" : goesBefore(before);
}

/** @throws EvregError `conflict` for a delivery that cannot be failed for good */
export function checkSkip(delivery: RequestedDelivery, findBefore: FindBefore): void {
  const { rowid, status, last_error: lastError } = delivery;
  if (status === "delivering") {
    throw conflict(delivery, "skipped", "an attempt of it is under way; wait for its result first");
  }
  if (!SKIPPABLE.has(status)) {
    throw conflict(delivery, "skipped", `it is ${status}, so nothing of it is left to be sent`);
  }
  if (lastError !== null) return;
  const before = findBefore(rowid);
  const why = before === undefined ? "only one that failed can be skipped" : goesBefore(before);
  throw conflict(delivery, "skipped", `no attempt of it has failed so far; ${why}`);
}

function goesBefore({ id, hasFailed, isOfKey }: DeliveryBefore): string {
  if (isOfKey) {
    return `its subscription is ordered by key, and delivery ${id} of the same key goes before it`;
  }
  const why = hasFailed ? "has failed so far and " : "";
  return `its subscription is ordered, and delivery ${id} ${why}goes before it`;
}

function conflict(
  { rowid, status }: RequestedDelivery,
  change: "retried" | "skipped",
  why: string,
): EvregError {
  return new EvregError("conflict", `Delivery ${rowid} cannot be ${change}: ${why}.`, { rowid, status });
}
