import { Args, Flags } from "@oclif/core";
import { nearest } from "../../domain/words/nearest.ts";
import { EvregError } from "../../domain/error.ts";
import type { Subscription } from "../../domain/subscription.ts";
import type { Evreg } from "../../evreg.ts";
import { subscriptionOf } from "../views/deliveries.ts";
import { rowidOf } from "../flags.ts";
import { usageError } from "../usage-errors.ts";

type SubscriptionNames = Pick<Subscription, "rowid" | "application" | "subscription" | "action">;

/** A subscription as it was typed: digits alone are its rowid, any other text is its name. */
export type TypedSubscription = number | string;

const parse = (text: string): Promise<TypedSubscription> =>
  Promise.resolve(/^\d+$/.test(text) ? rowidOf(text) : text);

export const subscriptionArg = Args.custom<TypedSubscription>({ parse })({
  description:
    "ID of the subscription, or its name: APPLICATION/SUBSCRIPTION, with #ACTION if it has several.",
  required: true,
  ignoreStdin: true,
});

export const subscriptionFlag = Flags.custom<TypedSubscription>({ parse, helpValue: "ID|NAME" })({
  summary: "Only to this subscription: its ID, or its name such as billing/invoices.",
});

/**
 * The rowid of the subscription that was typed. A name is looked up among those that the caller may read.
 * `not_found` with the one that was probably meant; `usage` with the candidates where several have that name.
 */
export async function subscriptionId(evreg: Evreg, typed: TypedSubscription): Promise<number> {
  if (typeof typed === "number") return typed;
  const name = typed.trim();
  const { data: named } = await evreg.subscriptions.list({ name });
  if (named.length === 1) return named[0]!.rowid;
  if (named.length > 1) throw ambiguous(name, named);
  throw unknown(name, (await evreg.subscriptions.list()).data);
}

function unknown(name: string, all: readonly SubscriptionNames[]): EvregError {
  const meant = nearest(name, all.map(subscriptionOf));
  const rule = meant === undefined ? "A name is APPLICATION/SUBSCRIPTION." : `Did you mean ${meant}?`;
  return new EvregError("not_found", `There is no subscription ${JSON.stringify(name)}. ${rule}`, {
    record: "subscription",
  });
}

const MAX_CANDIDATES = 10;

function ambiguous(name: string, named: readonly SubscriptionNames[]): EvregError {
  const candidates = named
    .slice(0, MAX_CANDIDATES)
    .map((one) => `${one.rowid}: ${subscriptionOf(one)}#${one.action}`);
  const message = `${JSON.stringify(name)} names ${named.length} subscriptions. Give one by its ID, or by its name with the action.`;
  return usageError(message, { candidates });
}
