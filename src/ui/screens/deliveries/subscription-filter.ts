import type { Subscription } from "../../../domain/subscription.ts";
import { nameOf } from "../../parts/delivery-acts.tsx";

/** What a person typed as a subscription, as far as it is known. */
interface NamedSubscription {
  /** Whether the list can be asked for. */
  readonly isKnown: boolean;
  readonly id?: number;
  /** Why there is none. */
  readonly reason?: string;
}

/**
 * The subscription that an ID or `billing/invoices` means.
 * @param subscriptions `undefined` while they are not known
 */
export function subscriptionsNamed(
  typed: string | undefined,
  subscriptions: readonly Subscription[] | undefined,
): NamedSubscription {
  if (typed === undefined) return { isKnown: true };
  if (/^[1-9]\d{0,14}$/.test(typed)) return { isKnown: true, id: Number(typed) };
  if (subscriptions === undefined) return { isKnown: false };
  const named = subscriptions.filter((one) => nameOf(one) === typed || one.subscription === typed);
  const [first] = named;
  if (first !== undefined && named.length === 1) return { isKnown: true, id: first.rowid };
  if (first === undefined) return { isKnown: false, reason: `None is called ${typed}.` };
  const ids = named.map(({ rowid, action }) => `${rowid} (${action})`).join(", ");
  return { isKnown: false, reason: `Several are called ${typed}. Filter by the number of one: ${ids}.` };
}
