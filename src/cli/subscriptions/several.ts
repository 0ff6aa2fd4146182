import { EvregError } from "../../domain/error.ts";
import type { NewSubscription, SubscriptionWithSecret } from "../../domain/subscription.ts";
import type { Evreg } from "../../evreg.ts";
import { shellWord } from "../../domain/formats.ts";
import { escapeControl } from "../io/text.ts";

/** What came of a subscription for each of several actions. */
export interface Subscribed {
  readonly created: readonly SubscriptionWithSecret[];
  /** The actions that had such a subscription before. It stays as it is. */
  readonly before: readonly string[];
  /** The actions that have none still. */
  readonly missing: readonly string[];
  /** Why some are missing, or none was created. */
  readonly failure?: unknown;
}

/** Makes a subscription for each action that has none yet, up to the first that is refused. */
export async function subscribeToAll(
  { subscriptions }: Evreg,
  actions: readonly string[],
  input: Omit<NewSubscription, "action">,
): Promise<Subscribed> {
  const created: SubscriptionWithSecret[] = [];
  const before: string[] = [];
  let conflict: unknown;
  for (const [index, action] of actions.entries()) {
    try {
      created.push((await subscriptions.create({ ...input, action })).data);
    } catch (failure) {
      const isThere = failure instanceof EvregError && failure.code === "conflict";
      if (!isThere) return { created, before, missing: actions.slice(index), failure };
      before.push(action);
      conflict ??= failure;
    }
  }
  return { created, before, missing: [], ...(created.length === 0 ? { failure: conflict } : {}) };
}

/** What to say to a person besides the failure itself. */
export function whatWasMade({ created, before, missing, failure }: Subscribed): string | undefined {
  if (created.length === 0) return "No subscription was made.";
  if (failure === undefined) {
    return before.length === 0 ? undefined : `There before, and left as they are: ${before.join(", ")}.`;
  }
  const made = created.map(({ action }) => action).join(", ");
  const rest = missing.map((action) => `--action ${shellWord(action)}`).join(" ");
  return escapeControl(
    `Made: ${made}. Not made: ${missing.join(", ")}. For the rest, give the same command with ${rest} alone.`,
  );
}
