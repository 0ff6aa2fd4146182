import { isDeepStrictEqual } from "node:util";
import { EvregError } from "../../domain/error.ts";
import { isPattern } from "../../domain/names.ts";
import type { RetryDefaults } from "../../domain/retry.ts";
import type { NewSubscription, Subscription, SubscriptionWithSecret } from "../../domain/subscription.ts";
import type { Evreg } from "../../evreg.ts";
import { shellWord } from "../../domain/formats.ts";
import { escapeControl } from "../io/text.ts";

/** What came of a subscription for each of several actions. */
export interface Subscribed {
  readonly created: readonly SubscriptionWithSecret[];
  /** The actions that had such a subscription before. */
  readonly before: readonly string[];
  /** The actions that have none still. */
  readonly missing: readonly string[];
  /** Why some are missing. */
  readonly failure?: unknown;
}

/**
 * Makes a subscription for each action that has none yet. What is likely to be refused is tried first, so that a slip leaves
 * nothing behind.
 * @throws EvregError `conflict` where one that exists is not as `input` asks for; nothing is made then
 */
export async function subscribeToAll(
  evreg: Evreg,
  actions: readonly string[],
  input: Omit<NewSubscription, "action">,
): Promise<Subscribed> {
  const existing = await existingOf(evreg, input);
  const before = actions.filter((action) => existing.has(action));
  const retries = before.length === 0 ? undefined : (await evreg.whoami()).data.retries;
  for (const action of before) await assertAsAsked(existing.get(action)!, input, retries);
  const open = before.length === actions.length ? actions : actions.filter((one) => !existing.has(one));
  const created: SubscriptionWithSecret[] = [];
  const missing = await doubtfulFirst(evreg, open);
  const result = { created, before, missing };
  try {
    for (let action = missing[0]; action !== undefined; action = missing[0]) {
      created.push((await evreg.subscriptions.create({ ...input, action })).data);
      missing.shift();
    }
  } catch (failure) {
    return { ...result, failure };
  }
  created.sort((one, other) => actions.indexOf(one.action) - actions.indexOf(other.action));
  return result;
}

/** What to say to a person besides the failure itself. */
export function whatWasMade({ created, before, missing, failure }: Subscribed): string | undefined {
  if (failure === undefined) {
    return before.length === 0 ? undefined : `There before, and as asked for: ${namesOf(before)}.`;
  }
  if (created.length === 0) return "No subscription was made.";
  const made = namesOf(created.map(({ action }) => action));
  const rest = missing.map((action) => `--action ${shellWord(action)}`).join(" ");
  return escapeControl(
    `Made: ${made}. Not made: ${namesOf(missing)}. For the rest, give the same command with ${rest} alone.`,
  );
}

function namesOf(actions: readonly string[]): string {
  return actions.join(", ");
}

/** The subscriptions by their actions; none where the token may create and not read. */
async function existingOf(
  evreg: Evreg,
  { application, subscription }: Pick<NewSubscription, "application" | "subscription">,
): Promise<ReadonlyMap<string, Subscription>> {
  const { data } = await evreg.subscriptions.list({ application }).catch(noneIfForbidden);
  const named = data.filter((one) => one.subscription === subscription.trim());
  return new Map(named.map((one) => [one.action, one]));
}

function noneIfForbidden(error: unknown): { readonly data: readonly Subscription[] } {
  if (error instanceof EvregError && error.code === "forbidden") return { data: [] };
  throw error;
}

/** Members that a flag names are compared, and those that have a default. A value that is never shown again cannot be. */
async function assertAsAsked(
  found: Subscription,
  input: Omit<NewSubscription, "action">,
  retries: RetryDefaults | undefined,
): Promise<void> {
  const { SUBSCRIPTION } = await import("../registry/members.ts");
  const { bearer_token: token, ...asked } = { ...input, action: found.action };
  const settings: Readonly<Record<string, unknown>> =
    token === undefined ? asked : { ...asked, bearer: "own" };
  const other = [...SUBSCRIPTION.members].find(([member, defaultOf]) => {
    const wanted = settings[member] ?? defaultOf(settings, retries);
    return wanted !== undefined && !isDeepStrictEqual(Object(found)[member], wanted);
  });
  if (other === undefined) return;
  const { rowid, application, subscription, action } = found;
  throw new EvregError(
    "conflict",
    `${application} has a subscription ${subscription} to ${action} already (ID ${rowid}), with another ${other[0]}. No subscription was made. Change that one with subscriptions update ${rowid}, or leave out --action ${shellWord(action)}.`,
    { field: other[0], rowid },
  );
}

/** Actions that are not to be seen come first, then patterns, which take more rights. */
async function doubtfulFirst(evreg: Evreg, actions: readonly string[]): Promise<string[]> {
  const doubts = new Map<string, number>();
  for (const action of actions) {
    if (isPattern(action)) doubts.set(action, 1);
    else doubts.set(action, (await evreg.actions.get(action).catch(() => undefined)) === undefined ? 2 : 0);
  }
  return actions.toSorted((one, other) => doubts.get(other)! - doubts.get(one)!);
}
