import type { Delivery } from "../../domain/delivery.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { useNow, Until } from "../parts/time.tsx";

/**
 * What a delivery that is due waits for, as far as its subscription tells.
 * @returns `undefined` where it waits for nothing but its turn
 */
export function waitsFor(
  { rowid, status, next_attempt_at: next }: Delivery,
  subscription: Subscription | undefined,
  now: number,
): string | undefined {
  if (status !== "pending" || subscription === undefined) return undefined;
  const { mode, ordered, blocked_by: blockedBy } = subscription;
  // The deliveries of some keys only are blocked in one that is ordered by key.
  if (ordered === true && blockedBy !== null && blockedBy < rowid) return `behind delivery ${blockedBy}`;
  if (mode === "pull" && (next === null || Date.parse(next) <= now)) return "for a consumer";
  return undefined;
}

/** When it is tried next, or what it waits for. */
export function Next(props: {
  readonly delivery: Delivery;
  readonly subscription: Subscription | undefined;
}) {
  const { delivery, subscription } = props;
  const words = waitsFor(delivery, subscription, useNow());
  if (words !== undefined) return <>{words}</>;
  const { next_attempt_at: next } = delivery;
  return next === null ? <span class="muted">–</span> : <Until at={next} />;
}
