import type { Subscription } from "../../domain/subscription.ts";
import type { Attention } from "../../domain/operations.ts";
import { attention } from "../api/attention.ts";
import type { SubscriptionState } from "./status.tsx";

/** How a subscription is now, the worst that is true of it. */
export function subscriptionState(
  subscription: Pick<
    Subscription,
    "rowid" | "active" | "disabled_reason" | "blocked_by" | "slowed_until" | "failing_since"
  >,
  now: number,
): SubscriptionState {
  const { active, disabled_reason: reason, blocked_by: blockedBy } = subscription;
  if (!active) return reason === null ? "paused" : "deactivated";
  if (blockedBy !== null) return "blocked";
  if (isSlowed(subscription.slowed_until, now)) return "slowed";
  if (subscription.failing_since !== null) return "failing";
  return isUnclaimed(subscription.rowid) ? "unclaimed" : "active";
}

/** Whether deliveries wait for consumers that do not come. Only the list of what needs a person tells. */
function isUnclaimed(id: number): boolean {
  return needOf(id, "unclaimed") !== undefined;
}

/** What is held and missed while it is paused or deactivated, from the same list. */
export function heldBack(id: number): Attention | undefined {
  return needOf(id, "paused") ?? needOf(id, "deactivated");
}

/** Why a subscription needs a person, if it does for this reason. */
export function needOf(id: number, reason: Attention["reason"]): Attention | undefined {
  return attention.value.answer?.data.find((item) => item.subscription_id === id && item.reason === reason);
}

export function isSlowed(until: string | null, now: number): until is string {
  return until !== null && Date.parse(until) > now;
}
