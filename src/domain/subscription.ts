import { type ChangeOf, type Field, type NewOf, type RecordOf, bodyOf } from "../model/field.ts";
import type { META } from "../model/meta.ts";
import { SUBSCRIPTION, SUBSCRIPTION_LIMITS } from "../model/subscription.ts";
import { NAME_LENGTH } from "./names.ts";
import { invalidField } from "./error.ts";
import { byAction, byApplication, inputSchema, type ValueOf } from "./request.ts";

/** Binds an application and a subscription name to an action, or several, and to the handler their events are sent to. */
export interface Subscription extends RecordOf<typeof SUBSCRIPTION> {}

export type SubscriptionMode = Subscription["mode"];

/** What `Authorization: Bearer` of its deliveries carries: its secret, a value of its own, or there is no such header. */
export type Bearer = Subscription["bearer"];

/** Only the answer that creates it or rotates its secret holds that. All of one application and name have the same one. */
export interface SubscriptionWithSecret extends Subscription {
  readonly secret: string;
}

export interface RotationMeta extends ValueOf<(typeof META)["rotated"]> {}

/** What a server that runs says beside a pull subscription. */
export interface ConsumersMeta extends ValueOf<(typeof META)["consumers"]> {}

export interface CancelledMeta extends ValueOf<(typeof META)["cancelled"]> {}

/** What is left out stays as it is; a setting that is `null` goes. `bearer_token` makes `bearer` `own`. */
export type SubscriptionUpdate = ChangeOf<typeof SUBSCRIPTION>;

/** It is of mode `push` by default, which needs a handler, and has as many retries as the server is configured for. */
export type NewSubscription = NewOf<typeof SUBSCRIPTION>;

/**
 * Checks that a subscription of this mode has a handler if it needs one, and nothing that has no meaning for it.
 * @param values its members by their names, as far as they are given
 * @throws `invalid`
 */
export function checkForMode(mode: SubscriptionMode, values: object): void {
  const members = values as Readonly<Record<string, unknown>>;
  if (mode === "push" && members["handler"] === null) {
    throw invalidField("handler", "is required for the mode push");
  }
  for (const [name, { only }] of Object.entries<Field>(SUBSCRIPTION)) {
    if (only === undefined || only.mode === mode || (members[name] ?? null) === null) continue;
    throw invalidField(name, `is not for subscriptions of the mode ${mode}: ${only.why}`, members[name]);
  }
}

/** @throws `invalid` for what cannot be a header's value, never with the value itself */
export function checkBearerToken(field: string, value: string): string {
  const max = SUBSCRIPTION_LIMITS.bearerTokenLength;
  if (value.length <= max && /^[!-~]+$/.test(value)) return value;
  throw invalidField(field, `must be 1 to ${max} printable ASCII characters without spaces`);
}

export const NEW_SUBSCRIPTION = bodyOf(SUBSCRIPTION, "new", { title: "NewSubscription" });

export const SUBSCRIPTION_UPDATE = bodyOf(SUBSCRIPTION, "change", {
  title: "SubscriptionUpdate",
  description: "Any subset; what is left out stays as it is, and a setting that is `null` goes.",
});

export const SECRET_ROTATION = inputSchema("SecretRotation", {
  overlap_ms: {
    type: "integer",
    minimum: 0,
    maximum: SUBSCRIPTION_LIMITS.overlapMaxMs,
    default: SUBSCRIPTION_LIMITS.overlapDefaultMs,
    description: "How long the secret before stays valid; 0 ends it at once.",
    examples: [3_600_000],
  },
});
export type SecretRotation = ValueOf<typeof SECRET_ROTATION>;

export const SUBSCRIPTION_QUERY = inputSchema("SubscriptionQuery", {
  application: byApplication,
  action: {
    ...byAction,
    description:
      "Only those that get the events of this action. A pattern such as `order.*`: only those with this very pattern.",
  },
  active: { type: "boolean", description: "Only active ones, or only paused ones." },
  name: {
    ...byApplication,
    maxLength: 3 * NAME_LENGTH + 2,
    description:
      "Only those of this whole name: `APPLICATION/SUBSCRIPTION`, which several may have, or `APPLICATION/SUBSCRIPTION#ACTION`.",
  },
});
export type SubscriptionQuery = ValueOf<typeof SUBSCRIPTION_QUERY>;
