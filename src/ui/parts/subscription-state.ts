import type { Subscription } from "../../domain/subscription.ts";
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
  return (attention.value.answer?.data ?? []).some(
    ({ reason, subscription_id: of }) => of === id && reason === "unclaimed",
  );
}

export function isSlowed(until: string | null, now: number): until is string {
  return until !== null && Date.parse(until) > now;
}
