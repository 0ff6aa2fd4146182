import { useMemo } from "preact/hooks";
import { pastTime } from "../../domain/formats.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { nameOf } from "./delivery-acts.tsx";
import type { FilterName } from "../parts/filter-field.tsx";

/**
 * The times of a list's filter as the API takes them. A time such as `1h` ago stays where it was when it was asked for, so
 * that a list that is read again keeps its beginning.
 */
export function useTimeRange(query: Readonly<Record<string, string>>): {
  readonly from: string | undefined;
  readonly to: string | undefined;
} {
  const { from, to } = query;
  return useMemo(() => {
    const now = Date.now();
    return { from: from && pastTime(from, now), to: to && pastTime(to, now) };
  }, [from, to]);
}

/** The filter of a list by subscription: its tag says the name, whatever was typed. */
export function subscriptionFilter(subscriptions: readonly Subscription[]): FilterName {
  return {
    name: "subscription",
    example: "billing/invoices",
    offers: [...new Set(subscriptions.map(nameOf))],
    shown: (value) => {
      const one = subscriptions.find(({ rowid }) => String(rowid) === value);
      return one === undefined ? value : nameOf(one);
    },
  };
}

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
