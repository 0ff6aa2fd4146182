import {
  attentionSentence,
  type SubscriptionState,
  subscriptionState,
} from "../../domain/words/attention.ts";
import type { Attention } from "../../domain/operations.ts";
import { attention } from "../api/attention.ts";
import { Time } from "../parts/time.tsx";

/** How a subscription is now, the gravest that is true of it. */
export function stateNow(
  subscription: Parameters<typeof subscriptionState>[0] & { readonly rowid: number },
  now: number,
): SubscriptionState {
  return subscriptionState(subscription, now, needOf(subscription.rowid, "unclaimed") !== undefined);
}

/** What is held and missed while it is paused or deactivated, from the list of what needs a person. */
export function heldBack(id: number): Attention | undefined {
  return needOf(id, "paused") ?? needOf(id, "deactivated");
}

/** Why a subscription needs a person, if it does for this reason. */
export function needOf(id: number, reason: Attention["reason"]): Attention | undefined {
  return attention.value.answer?.data.find((item) => item.subscription_id === id && item.reason === reason);
}

export function isAhead(until: string | null, now: number): until is string {
  return until !== null && Date.parse(until) > now;
}

/** What is said of a subscription that needs a person, with times in the reader's zone. */
export function AttentionWords({ item }: { readonly item: Attention }) {
  return (
    <>
      {attentionSentence(item).map((part, index) => {
        if (typeof part === "string") return part;
        return "time" in part ? <Time key={index} at={part.time} /> : <code key={index}>{part.error}</code>;
      })}
    </>
  );
}
