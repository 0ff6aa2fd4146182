import type { ComponentChildren } from "preact";
import type { Delivery } from "../../domain/delivery.ts";
import type { Attention } from "../../domain/operations.ts";
import type { Replay } from "../../domain/replay.ts";
import type { SubscriptionFigures } from "../../domain/stats/stats.ts";
import type { Subscription } from "../../domain/subscription.ts";
import {
  attentionSentence,
  type SubscriptionState,
  subscriptionState,
} from "../../domain/words/attention.ts";
import { attention } from "../api/attention.ts";
import { may } from "../api/session.ts";
import { Button, NONE } from "../parts/layout.tsx";
import type { FilterName } from "../parts/list.tsx";
import { linkTo, type Route } from "../parts/route.ts";
import { Empty } from "../parts/states.tsx";
import { errorText, failedShare, percentText, Time } from "../parts/values.tsx";

/** `billing/invoices` */
function nameOf(delivery: Pick<Delivery, "application" | "subscription">): string {
  return `${delivery.application}/${delivery.subscription}`;
}

/**
 * It in a text. Each part stands by itself: in scripts that are written from right to left the two would change places.
 * @param props.before what stands around it: `Delete `, `?`
 */
export function SubscriptionName(props: {
  readonly record: Pick<Delivery, "application" | "subscription">;
  readonly before?: string;
  readonly after?: string;
}) {
  const { record, before, after } = props;
  return (
    <>
      {before}
      <bdi>{record.application}</bdi>/<bdi>{record.subscription}</bdi>
      {after}
    </>
  );
}

/** The name of a subscription, or that of a delivery or replay, as a link to it. */
export function SubscriptionLink({ record }: { readonly record: Subscription | Delivery | Replay }) {
  return (
    <a href={linkTo(["subscriptions", "subscription_id" in record ? record.subscription_id : record.rowid])}>
      <SubscriptionName record={record} />
    </a>
  );
}

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

/** The share of attempts that succeeded. @param props.of nothing, where it had none */
export function Success({ figures }: { readonly figures: SubscriptionFigures | undefined }) {
  const share = figures === undefined ? null : failedShare(figures);
  return share === null ? NONE : <>{percentText(100 - share)}</>;
}

export function LastError({ figures }: { readonly figures: SubscriptionFigures | undefined }) {
  const error = figures?.last_error ?? null;
  return error === null ? NONE : <code>{errorText(error)}</code>;
}

/** The filter of a list by subscription: its tag says the name, whatever was typed. */
export function subscriptionFilter(subscriptions: readonly Subscription[] = []): FilterName {
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

/** There is no subscription at all. @param props.button what makes one */
export function NoSubscriptions({ button }: { readonly button?: ComponentChildren }) {
  return (
    <Empty
      title="No subscription yet"
      // Works as it stands, also where there is no action yet.
      command="evreg subscriptions create --application shop --subscription mail --action '*' --handler https://hooks.example.com/evreg"
      button={button}
    >
      A subscription binds an action to the address that its events are sent to.
      {!may("read") && " This token sees those of its application alone."}
    </Empty>
  );
}

/** What a person typed as a subscription, as far as it is known. */
interface NamedSubscription {
  /** Whether the list can be asked for. */
  readonly isKnown: boolean;
  readonly id?: number;
  /** Stands for the list, where none or several are called so. */
  readonly instead?: ComponentChildren;
}

/**
 * The subscription that the filter of a list names, by its ID or as `billing/invoices`.
 * @param subscriptions `undefined` while they are not known
 */
export function subscriptionNamed(
  { path, query }: Route,
  subscriptions: readonly Subscription[] | undefined,
): NamedSubscription {
  const { subscription: typed } = query;
  if (typed === undefined) return { isKnown: true };
  if (/^[1-9]\d{0,14}$/.test(typed)) return { isKnown: true, id: Number(typed) };
  if (subscriptions === undefined) return { isKnown: false };
  const named = subscriptions.filter((one) => nameOf(one) === typed || one.subscription === typed);
  if (named.length === 1) return { isKnown: true, id: named[0]!.rowid };
  const ids = named.map(({ rowid, action }) => `${rowid} (${action})`).join(", ");
  const all = linkTo(path.slice(0, 1), { ...query, subscription: undefined });
  const instead = (
    <Empty title="No such subscription" button={<Button to={all} label="Of all subscriptions" />}>
      {ids === ""
        ? `None is called ${typed}.`
        : `Several are called ${typed}. Filter by the number of one: ${ids}.`}
    </Empty>
  );
  return { isKnown: false, instead };
}
