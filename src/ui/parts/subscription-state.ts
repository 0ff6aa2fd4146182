import type { Subscription } from "../../domain/subscription.ts";
import type { SubscriptionState } from "./status.tsx";

/** How a subscription is now, the worst that is true of it. */
export function subscriptionState(
  subscription: Pick<
    Subscription,
    "active" | "disabled_reason" | "blocked_by" | "slowed_until" | "failing_since"
  >,
  now: number,
): SubscriptionState {
  const { active, disabled_reason: reason, blocked_by: blockedBy } = subscription;
  if (!active) return reason === null ? "paused" : "deactivated";
  if (blockedBy !== null) return "blocked";
  if (isSlowed(subscription.slowed_until, now)) return "slowed";
  return subscription.failing_since === null ? "active" : "failing";
}

export function isSlowed(until: string | null, now: number): until is string {
  return until !== null && Date.parse(until) > now;
}
