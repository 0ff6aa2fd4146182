import { hostname, userInfo } from "node:os";
import { EvregError } from "../../domain/error.ts";
import { NAME_LENGTH } from "../../domain/names.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { parseScope } from "../../domain/token.ts";
import type { Evreg } from "../../evreg.ts";
import { SUBSCRIPTION_LIMITS } from "../../model/subscription.ts";
import { note } from "../io/output.ts";
import { escapeControl } from "../io/text.ts";
import { nextCommand } from "../target/next-command.ts";
import { usageError } from "../usage-errors.ts";

/** What nobody listens to for so long is deleted by the server. */
const EXPIRES_AFTER_MS = 24 * 3_600_000;
/** Where a token is not limited to an application. */
const APPLICATION = "listen";
const OWN_NAME = "listen-";

export interface Listened {
  readonly application?: string | undefined;
  readonly subscription?: string | undefined;
  readonly actions?: readonly string[] | undefined;
}

/** Who listens, as attempts and the name of its subscription show it. */
export function listenerName(): string {
  let user = "user";
  try {
    user = userInfo().username;
  } catch {
    // A user whom the system does not know, as in a container.
  }
  return `${user}@${hostname()}`.slice(0, NAME_LENGTH - OWN_NAME.length);
}

/** Whether `evreg listen` has made a subscription for one who listens, and nobody has named it. */
export function isOfListener({ subscription, expires_after_ms: expires }: Subscription): boolean {
  return expires !== null && subscription.startsWith(OWN_NAME) && subscription.includes("@");
}

/** The pull subscriptions to the actions, one for each. What is not there is made, and the secret that signs its deliveries shown. */
export async function subscriptionsFor(evreg: Evreg, listened: Listened): Promise<Subscription[]> {
  const application = listened.application ?? (await applicationOf(evreg));
  const subscription = listened.subscription ?? `${OWN_NAME}${listenerName()}`;
  const named = await listNamed(evreg, application, subscription);
  // Whoever names a subscription that is there, and no action, means that one as it is.
  const there = listened.subscription === undefined ? [] : named.map(({ action }) => action);
  const actions = listened.actions ?? (there.length > 0 ? there : ["*"]);
  const subscriptions: Subscription[] = [];
  for (const action of new Set(actions)) {
    const wanted = { application, subscription, action };
    const one = named.find((known) => known.action === action) ?? (await make(evreg, wanted));
    mustFit(one);
    subscriptions.push(one);
  }
  return subscriptions;
}

/** Lists the subscriptions of that name that the token may read. */
async function listNamed(evreg: Evreg, application: string, name: string): Promise<readonly Subscription[]> {
  try {
    const { data } = await evreg.subscriptions.list({ application });
    return data.filter(({ subscription }) => subscription === name);
  } catch (error) {
    if (error instanceof EvregError && error.code === "forbidden") return [];
    throw error;
  }
}

/** The only one that the token may listen for. */
async function applicationOf(evreg: Evreg): Promise<string> {
  const { data } = await evreg.whoami();
  const own = new Set<string>();
  for (const scope of data.scopes) {
    const { name, application } = parseScope(scope) ?? {};
    if (name === undefined || name === "read" || name === "publish") continue;
    if (application === undefined) return APPLICATION;
    own.add(application);
  }
  return [...own][0] ?? APPLICATION;
}

type Wanted = Pick<Subscription, "application" | "subscription" | "action">;

async function make({ subscriptions }: Evreg, wanted: Wanted): Promise<Subscription> {
  const input = {
    ...wanted,
    mode: "pull",
    expires_after_ms: EXPIRES_AFTER_MS,
    // A program on a developer's machine may be down for hours.
    max_retries: SUBSCRIPTION_LIMITS.retriesMax,
  } as const;
  try {
    const { secret, ...created } = (await subscriptions.create(input)).data;
    note(
      `Made the subscription ${nameOf(created)}. Its deliveries are signed with ${secret} (shown only now).`,
    );
    return created;
  } catch (error) {
    // A token may be allowed to listen, and not to list what is there.
    const id = error instanceof EvregError && error.code === "conflict" ? error.details["rowid"] : undefined;
    if (typeof id !== "number") throw error;
    return (await subscriptions.get(id)).data;
  }
}

function mustFit(subscription: Subscription): void {
  if (subscription.mode !== "pull") {
    throw usageError(
      `The subscription ${nameOf(subscription)} has a handler; give another name with --subscription.`,
    );
  }
  if (!subscription.active) {
    note(
      `The subscription ${nameOf(subscription)} is paused: ${nextCommand(`subscriptions update ${subscription.rowid} --active`)}`,
    );
  }
}

/** Says where somebody else takes deliveries of it now. */
export async function noteOthers({ subscriptions }: Evreg, listened: readonly Subscription[]): Promise<void> {
  for (const one of listened) {
    const { meta } = await subscriptions.get(one.rowid);
    if ((meta?.consumers ?? 0) === 0) continue;
    note(
      `Another listener takes a part of these events: ${nameOf(one)}. Give this one a name of its own with --subscription, or see all events with: ${nextCommand("events tail")}`,
    );
  }
}

export function nameOf({ application, subscription, action, rowid }: Subscription): string {
  return escapeControl(`${application}/${subscription} to ${action} (${rowid})`);
}
