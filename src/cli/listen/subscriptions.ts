import { hostname, userInfo } from "node:os";
import { EvregError } from "../../domain/error.ts";
import { isPattern, NAME_LENGTH } from "../../domain/names.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { parseScope } from "../../domain/token.ts";
import type { Evreg } from "../../evreg.ts";
import { subscriptionOf } from "../views/deliveries.ts";
import { note } from "../io/output.ts";
import { escapeControl } from "../io/text.ts";
import { commandWithOtherToken, nextCommand } from "../target/next-command.ts";
import { subscriptionId, type TypedSubscription } from "../subscriptions/name.ts";
import { usageError } from "../usage-errors.ts";

/** What nobody listens to for so long is deleted by the server. */
const EXPIRES_AFTER_MS = 24 * 3_600_000;
/** Where a token is not limited to an application. */
const APPLICATION = "listen";

export interface Listened {
  readonly application?: string | undefined;
  readonly subscription?: string | undefined;
  readonly actions: readonly string[];
  readonly ordered: boolean;
}

/** Who listens, as attempts and the name of its subscription show it. */
export function listenerName(): string {
  let user = "user";
  try {
    user = userInfo().username;
  } catch {
    // A user whom the system does not know, as in a container.
  }
  return `${user}@${hostname()}`.slice(0, NAME_LENGTH - "listen-".length);
}

/**
 * The pull subscriptions to the actions, one for each. What is not there is made, and the secret that signs its deliveries shown.
 * @param signer whose secret signs them instead
 */
export async function subscriptionsFor(
  evreg: Evreg,
  listened: Listened,
  signer?: Subscription,
): Promise<Subscription[]> {
  const application = listened.application ?? (await applicationOf(evreg));
  const subscription = listened.subscription ?? `listen-${listenerName()}`;
  const named = await listNamed(evreg, application, subscription);
  const subscriptions: Subscription[] = [];
  for (const action of new Set(listened.actions)) {
    const { ordered } = listened;
    const wanted = { application, subscription, action, ordered };
    subscriptions.push(await ensure(evreg, wanted, [...named, ...subscriptions], signer));
  }
  for (const other of named) {
    if (other.mode !== "pull" || subscriptions.some(({ rowid }) => rowid === other.rowid)) continue;
    const expires =
      other.expires_after_ms === null ? "" : ", until nobody has taken any for the time it was made with";
    note(
      `The subscription ${nameOf(other)} goes on collecting events${expires}. Delete it: ${nextCommand(`subscriptions delete ${other.rowid}`)}`,
    );
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

/** What to type when the token may not do it; `undefined` for any other error. */
export async function scopeHint(
  evreg: Evreg,
  error: unknown,
  { application, actions }: Listened,
): Promise<string | undefined> {
  if (!(error instanceof EvregError) || (error.code !== "forbidden" && error.code !== "not_found")) {
    return undefined;
  }
  const { data } = await evreg.whoami();
  const scopes = data.scopes.map((scope) => parseScope(scope)?.name);
  if (error.code === "forbidden" && application !== undefined && error.details["scope"] !== "read") {
    const own = await applicationOf(evreg);
    return own === application ? undefined : `This token may listen with --application ${own}.`;
  }
  if (!scopes.some((name) => name === "read" || name === "write" || name === "admin")) {
    return `To listen to an action takes the right to read it. Make a token that may do both: ${commandWithOtherToken("tokens create NAME --scope listen --scope read")}`;
  }
  const isAll = error.code === "forbidden" && actions.some((action) => isPattern(action));
  return isAll ? "Name the actions that this token may read with --action." : undefined;
}

type Wanted = Pick<Subscription, "application" | "subscription" | "action" | "ordered">;

/** @param named those that are known to have its name, and so its secret */
async function ensure(
  { subscriptions }: Evreg,
  wanted: Wanted,
  named: readonly Subscription[],
  signer: Subscription | undefined,
): Promise<Subscription> {
  const known = named.find(({ action }) => action === wanted.action);
  if (known !== undefined) {
    mustFit(known, wanted);
    return known;
  }
  try {
    const input = { ...wanted, mode: "pull", expires_after_ms: EXPIRES_AFTER_MS } as const;
    const { data } = await subscriptions.create(input);
    const { secret, ...created } = data;
    const own = named.length === 0 ? `${secret} (shown only now)` : "the secret that all of this name have";
    const signing = signer === undefined ? own : `the secret of ${nameOf(signer)}`;
    note(`Made the subscription ${nameOf(created)}. Its deliveries are signed with ${signing}.`);
    return created;
  } catch (error) {
    const id = error instanceof EvregError && error.code === "conflict" ? error.details["rowid"] : undefined;
    if (typeof id !== "number") throw error;
    const { data } = await subscriptions.get(id);
    mustFit(data, wanted);
    return data;
  }
}

function mustFit(subscription: Subscription, { ordered }: Wanted): void {
  if (subscription.mode !== "pull") {
    throw usageError(
      `The subscription ${nameOf(subscription)} has a handler; give another name with --subscription.`,
    );
  }
  if (ordered && !subscription.ordered) {
    throw usageError(
      `The subscription ${nameOf(subscription)} is not ordered; give another name with --subscription, or change it: ${nextCommand(`subscriptions update ${subscription.rowid} --ordered`)}.`,
    );
  }
  if (!subscription.active) {
    note(
      `The subscription ${nameOf(subscription)} is paused: ${nextCommand(`subscriptions update ${subscription.rowid} --active`)}.`,
    );
  }
}

/**
 * The subscription whose secret is to sign, checked before anything is made.
 * @throws EvregError `not_found`; `forbidden` with the scope that the token lacks
 */
export async function signerOf(evreg: Evreg, typed: TypedSubscription): Promise<Subscription> {
  const { data: signer } = await evreg.subscriptions.get(await subscriptionId(evreg, typed));
  const { data: caller } = await evreg.whoami();
  const isAllowed = caller.scopes.some((scope) => {
    const { name, application = signer.application } = parseScope(scope) ?? {};
    return (name === "write" || name === "admin") && application === signer.application;
  });
  if (isAllowed) return signer;
  const scope = `write:${signer.application}`;
  throw new EvregError(
    "forbidden",
    `To sign with the secret of ${nameOf(signer)} takes the scope ${escapeControl(scope)}, which this token does not have. Nothing was made.`,
    { scope },
  );
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

/** What it can be typed as: its name, unless a shell would read that otherwise or several have it. */
export function typedName(subscription: Subscription, all: readonly Subscription[]): string {
  const name = subscriptionOf(subscription);
  const isPlain = /^[\w@%+=:,./-]+$/.test(name);
  return isPlain && all.length === 1 ? name : String(subscription.rowid);
}
