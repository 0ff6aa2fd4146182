import type { Delivery } from "../../domain/delivery.ts";
import { PULL_LIMITS } from "../../domain/pull.ts";
import type { Subscription } from "../../domain/subscription.ts";
import type { Evreg } from "../../evreg.ts";

/** Consumers that wait ask again this often at least, and the server notes the time once a minute. */
const ATTENDED_MS = 60_000 + PULL_LIMITS.waitMaxMs + 10_000;

/**
 * Whether a delivery is worth waiting for: those of a pull subscription are only while somebody claims from it. Times are
 * those of the server, which may have another clock.
 * @param sinceIso when the events were published
 * @param elapsedMs how long ago that is
 */
export function attendance(
  { subscriptions }: Pick<Evreg, "subscriptions">,
  sinceIso: string,
  elapsedMs: () => number,
): (delivery: Delivery) => Promise<boolean> {
  const known = new Map<number, Subscription | undefined>();
  const isAttended = (subscription: Subscription | undefined): boolean => {
    // One that cannot be read may be of any mode.
    if (subscription?.mode !== "pull") return true;
    const { last_claim_at: last } = subscription;
    return last !== null && Date.parse(last) >= Date.parse(sinceIso) + elapsedMs() - ATTENDED_MS;
  };
  return async ({ subscription_id: id, status }) => {
    // A consumer has it now, or a pause holds it, which is said in other words.
    if (status === "delivering" || status === "held") return true;
    if (known.has(id) && isAttended(known.get(id))) return true;
    const answer = await subscriptions.get(id).catch(() => undefined);
    known.set(id, answer?.data);
    return isAttended(answer?.data);
  };
}
