import { nearest } from "../../config/nearest.ts";
import { DEFAULT_RULE } from "../../domain/compatibility.ts";
import { DECLARED_ACTION } from "../../domain/requests/actions.ts";
import type { BodySchema } from "../../domain/requests/members.ts";
import { NEW_SUBSCRIPTION } from "../../domain/requests/subscriptions.ts";
import { NO_SETTINGS, type SubscriptionSettings } from "../../domain/subscription-settings.ts";
import { retriesUnlessSaid } from "../../domain/subscription.ts";

export type Values = Readonly<Record<string, unknown>>;

/**
 * The value of a member that a file leaves out, from those it gives; `undefined` where what is there stays, and a new
 * record gets what the service gives it.
 */
type Default = (declared: Values) => unknown;

/** What registry files can declare of one noun. */
export interface Declarable {
  readonly noun: "action" | "subscription";
  /** Its list in a file. */
  readonly list: "actions" | "subscriptions";
  /** What tells one record from another. It never changes. */
  readonly identity: readonly string[];
  /** The other members, in the order an export writes them. */
  readonly members: ReadonlyMap<string, Default>;
  /** Members that stand for another one: a file never holds their value itself. */
  readonly references: readonly string[];
  /** What a record is held to, references resolved. */
  readonly body: BodySchema;
}

const asItIs: Default = () => undefined;
const always =
  (value: unknown): Default =>
  () =>
    value;

export const ACTION: Declarable = {
  noun: "action",
  list: "actions",
  identity: ["action"],
  members: new Map([
    ["application", asItIs],
    ["schemata", asItIs],
    ["compatibility", always(DEFAULT_RULE.compatibility)],
    ["compatibility_against", always(DEFAULT_RULE.compatibility_against)],
    // Who deprecates or retires an action is not overruled by a file that says nothing of it.
    ["deprecated", asItIs],
    ["retired", asItIs],
    ["successor", asItIs],
  ]),
  references: [],
  body: DECLARED_ACTION,
};

/** Every setting of subscriptions can be declared, so one that is added to `NO_SETTINGS` is here already. */
const settings: readonly (readonly [string, Default])[] = Object.entries({
  ...NO_SETTINGS,
} satisfies SubscriptionSettings).map(([name, none]) => [name, always(none)]);

export const SUBSCRIPTION: Declarable = {
  noun: "subscription",
  list: "subscriptions",
  identity: ["application", "subscription", "action"],
  members: new Map<string, Default>([
    ["handler", asItIs],
    ["max_retries", (declared) => retriesUnlessSaid(declared)],
    // Who pauses a subscription, or a handler that asked for no more, is not overruled by a file that says nothing of it.
    ["active", asItIs],
    ["bearer", always("secret")],
    ...settings,
    ["on_exhausted", ({ ordered }) => (ordered === true ? "block" : null)],
  ]),
  references: ["bearer_token_file"],
  body: NEW_SUBSCRIPTION,
};

/** Of the members that stay as they are unless a file says them, how a new record has them. */
export const AS_NEW: Values = { active: true, deprecated: false, retired: false, successor: null };

/** The names a file may give a record of the noun. */
export function memberNames({ identity, members, references }: Declarable): readonly string[] {
  return [...identity, ...members.keys(), ...references];
}

export function unknownMember(name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  const hint = meant === undefined ? `here it takes ${known.join(", ")}` : `did you mean ${meant}?`;
  return `${name} is not known here; ${hint}`;
}
