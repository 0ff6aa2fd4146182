import { invalidField } from "./error.ts";
import {
  actionPattern,
  application,
  type BodyOf,
  bodySchema,
  type BodySchema,
  byAction,
  byApplication,
  label,
  type QueryOf,
  querySchema,
} from "./request.ts";
import { RETRY_DEFAULTS } from "./retry.ts";
import { KEY_POINTER, KEY_POINTER_LENGTH } from "./order-key.ts";
import {
  HEADER_NAME,
  HEADER_VALUE,
  ON_EXHAUSTED,
  SETTINGS_LIMITS,
  type SubscriptionSettings,
} from "./subscription-settings.ts";

/** push: evreg sends its deliveries to its handler. pull: it has none, and consumers claim them. */
export const MODES = ["push", "pull"] as const;
export type SubscriptionMode = (typeof MODES)[number];

/** Binds an application and a subscription name to an action, or several, and to the handler their events are sent to. */
export interface Subscription extends SubscriptionSettings {
  readonly rowid: number;
  readonly application: string;
  readonly subscription: string;
  /** A name; `order.*` for all actions beneath order, also later ones; `*` for all but evreg's own. */
  readonly action: string;
  /** Never changes. */
  readonly mode: SubscriptionMode;
  /** `null` for one of mode `pull`. */
  readonly handler: string | null;
  readonly max_retries: number;
  readonly active: boolean;
  /** Why evreg itself deactivated it; `null` while active or when a person paused it. */
  readonly disabled_reason: string | null;
  readonly bearer: Bearer;
  /** While its secret is being rotated: until when deliveries are signed with the previous one as well. */
  readonly previous_secret_until: string | null;
  /** ISO 8601 UTC: when the first attempt after the last success failed; `null` when the last attempt succeeded. */
  readonly failing_since: string | null;
  /**
   * ISO 8601 UTC: no attempt begins before this unless a person asks for one, because the handler asked for a pause or only
   * refuses. It may have passed.
   */
  readonly slowed_until: string | null;
  /** Rowid of the delivery that blocks an ordered subscription, or the first of several keys: it has used up its retries and is still tried. */
  readonly blocked_by: number | null;
  /** How many keys are blocked, where it is ordered by key; 1,000 stands for at least so many. `null` for any other. */
  readonly blocked_keys: number | null;
  /** ISO 8601 UTC, to the minute: when a consumer last claimed from one of mode `pull`. */
  readonly last_claim_at: string | null;
  readonly timestamped: string;
}

/** What `Authorization: Bearer` of its deliveries carries: its secret, a value of its own, or there is no such header. */
export const BEARERS = ["secret", "own", "none"] as const;
export type Bearer = (typeof BEARERS)[number];

/** Only the answer that creates it or rotates its secret holds that. All of one application and name have the same one. */
export interface SubscriptionWithSecret extends Subscription {
  readonly secret: string;
}

export interface RotationMeta {
  /** Subscriptions that have the new secret: all of this application and name. */
  readonly rotated: number;
}

/** What a server that runs says beside a pull subscription. */
export interface ConsumersMeta {
  /** Consumers that wait for its deliveries now. */
  readonly consumers: number;
}

export interface CancelledMeta {
  /** Deliveries that waited. One under way is cancelled only if it fails. */
  readonly cancelled: number;
}

/** What is left out stays as it is; a setting that is `null` goes. */
export interface SubscriptionUpdate extends Partial<
  SubscriptionSettings &
    Pick<Subscription, "mode" | "handler" | "max_retries" | "active" | "action" | "bearer">
> {
  /** Makes `bearer` `own`; never shown again. */
  readonly bearer_token?: string;
}

/** It is of mode `push` by default, which needs a handler, and has as many retries as the server is configured for. */
export type NewSubscription = SubscriptionUpdate &
  Pick<Subscription, "application" | "subscription" | "action">;

const DAY_MS = 86_400_000;

export const SUBSCRIPTION_LIMITS = {
  retriesMax: 20,
  handlerLength: 2_048,
  bearerTokenLength: 1_024,
  overlapDefaultMs: DAY_MS,
  overlapMaxMs: 30 * DAY_MS,
} as const;

/** What only an attempt to reach a handler has, and why one of mode `pull` has not. */
const OF_PUSH: Readonly<Record<string, string>> = {
  handler: "consumers claim its deliveries",
  rate_limit: "a consumer claims at the pace that it wants",
  max_in_flight: "a consumer claims as many as it wants",
  timeout_ms: "a claim says how long its lease lasts",
};

/**
 * Checks that a subscription of this mode has a handler if it needs one, and nothing that has no meaning for it.
 * @param values its members by their names, as far as they are given
 * @throws `invalid`
 */
export function checkForMode(mode: SubscriptionMode, values: object): void {
  const given = values as Readonly<Record<string, unknown>>;
  if (mode === "push") {
    if (given["handler"] === null) throw invalidField("handler", "is required for the mode push");
    if ((given["expires_after_ms"] ?? null) === null) return;
    throw invalidField("expires_after_ms", "is only for the mode pull", given["expires_after_ms"]);
  }
  for (const [name, why] of Object.entries(OF_PUSH)) {
    if ((given[name] ?? null) === null) continue;
    throw invalidField(name, `is not for subscriptions of the mode pull: ${why}`, given[name]);
  }
}

/** @throws `invalid` for what cannot be a header's value, never with the value itself */
export function checkBearerToken(field: string, value: string): string {
  const max = SUBSCRIPTION_LIMITS.bearerTokenLength;
  if (value.length <= max && /^[!-~]+$/.test(value)) return value;
  throw invalidField(field, `must be 1 to ${max} printable ASCII characters without spaces`);
}

const mode = {
  type: "string",
  enum: MODES,
  description:
    "push: evreg sends its deliveries to its handler. pull: it has no handler, and consumers claim its deliveries. It never changes.",
} as const;

const handler = {
  type: ["string", "null"],
  format: "uri",
  maxLength: SUBSCRIPTION_LIMITS.handlerLength,
  description:
    "Absolute https: URL, without user info and not inside the operator's network. Required for `push`, and not for `pull`.",
  examples: ["https://hooks.example.com/evreg"],
} as const;

const PATTERNS =
  "`order.*`: those of all actions beneath order, `*`: of all but evreg's own, in both cases also of actions that are made later. A pattern takes the right to read, or to write, for all applications.";

const maxRetries = {
  type: "integer",
  minimum: 0,
  maximum: SUBSCRIPTION_LIMITS.retriesMax,
  description:
    "Retries after the first attempt. Unless the server's configuration or `retry_schedule` sets other waits, they come at once and after 2, 4, 8 and 16 seconds; from the sixth on the wait goes on doubling, up to 6 hours.",
} as const;

const active = { type: "boolean", description: "False pauses the subscription." } as const;

const bearer = {
  type: "string",
  enum: BEARERS,
  description:
    "What `Authorization: Bearer` of its deliveries carries: its secret, a value of its own (`bearer_token`), or there is no such header.",
} as const;

const bearerToken = {
  type: "string",
  minLength: 1,
  maxLength: SUBSCRIPTION_LIMITS.bearerTokenLength,
  pattern: "^[!-~]*$",
  writeOnly: true,
  description: "The value of its own for `bearer`, which need not be given beside it. It is never shown.",
} as const;

/** More are not counted. */
export const MAX_BLOCKED_KEYS = 1_000;

/** What `ordered` means. */
export const ORDERED_MEANS =
  "`true`: one delivery at a time, in the order in which the events were published. With a key: one at a time of all events with the same value (a string, a number, true, false or null) at that JSON Pointer, and others beside it; events without such a value count as one key.";

const settings = {
  filter: {
    type: ["object", "null"],
    description:
      "A JSON Schema Draft 7 document, held to the limits of an action's schema. Events whose payload does not conform to it are not sent; their delivery ends as `filtered`. It goes for all deliveries that have not begun.",
    examples: [{ properties: { country: { const: "FR" } }, required: ["country"] }],
  },
  rate_limit: {
    type: ["number", "null"],
    minimum: SETTINGS_LIMITS.rateMin,
    maximum: SETTINGS_LIMITS.rateMax,
    description: "Most attempts begun in a second.",
    examples: [10],
  },
  max_in_flight: {
    type: ["integer", "null"],
    minimum: 1,
    maximum: SETTINGS_LIMITS.inFlightMax,
    description: "Most attempts under way at a time; never more than the service allows to each.",
  },
  timeout_ms: {
    type: ["integer", "null"],
    minimum: SETTINGS_LIMITS.timeoutMinMs,
    maximum: SETTINGS_LIMITS.timeoutMaxMs,
    description: "How long one attempt may take, from looking the host up to the end of the answer.",
  },
  headers: {
    type: ["object", "null"],
    maxProperties: SETTINGS_LIMITS.headers,
    propertyNames: { pattern: HEADER_NAME, minLength: 1, maxLength: SETTINGS_LIMITS.headerNameLength },
    additionalProperties: {
      type: "string",
      pattern: HEADER_VALUE,
      maxLength: SETTINGS_LIMITS.headerValueLength,
    },
    description: `Sent with each delivery beside the service's own, which they cannot replace; at most ${SETTINGS_LIMITS.headersBytes} bytes of names and values together. They are shown: a credential belongs into \`bearer_token\`.`,
    examples: [{ "X-Team": "billing" }],
  },
  retry_schedule: {
    type: ["array", "null"],
    minItems: 1,
    maxItems: SETTINGS_LIMITS.waits,
    items: { type: "integer", minimum: 0, maximum: SETTINGS_LIMITS.waitMaxMs },
    description:
      "The waits before retry 1, 2, … in milliseconds; the last one goes for all that follow. How many retries there are is for `max_retries` to say.",
    examples: [[0, 60_000, 3_600_000]],
  },
  ordered: {
    type: ["boolean", "object"],
    properties: {
      key: {
        type: "string",
        pattern: KEY_POINTER,
        maxLength: KEY_POINTER_LENGTH,
        description: "A JSON Pointer into the payload.",
        examples: ["/customer/id"],
      },
    },
    required: ["key"],
    additionalProperties: false,
    description: ORDERED_MEANS,
    examples: [{ key: "/customer/id" }],
  },
  on_exhausted: {
    enum: [...ON_EXHAUSTED, null],
    description:
      "Of an ordered one, what becomes of a delivery that has used up its retries. block: it is tried on, and those behind it (of its key, where there is one) wait. skip: it has failed, and the next one is sent.",
  },
  expires_after_ms: {
    type: ["integer", "null"],
    minimum: SETTINGS_LIMITS.expiryMinMs,
    maximum: SETTINGS_LIMITS.expiryMaxMs,
    description:
      "Of one of mode `pull`: it is deleted once nobody has claimed from it for so long. The first hour of a server counts for nothing.",
    examples: [86_400_000],
  },
} as const;

export const NEW_SUBSCRIPTION = bodySchema(
  "NewSubscription",
  {
    application: { ...application, description: "Name of the subscribing application." },
    subscription: { ...label, description: "Name of the subscription.", examples: ["welcome-mail"] },
    action: { ...actionPattern, description: `The action whose events are delivered; ${PATTERNS}` },
    mode: { ...mode, default: "push" },
    handler,
    max_retries: {
      ...maxRetries,
      description: `${maxRetries.description} Left out: one for each wait of \`retry_schedule\`, else as \`GET /v1/whoami\` says; ${RETRY_DEFAULTS.max_retries} unless the server is configured otherwise.`,
    },
    active: { ...active, default: true },
    bearer: { ...bearer, default: "secret" },
    bearer_token: bearerToken,
    ...settings,
    ordered: { ...settings.ordered, default: false },
  },
  ["application", "subscription", "action"],
);

export const SUBSCRIPTION_UPDATE: BodySchema = {
  title: "SubscriptionUpdate",
  description: "Any subset; what is left out stays as it is, and a setting that is `null` goes.",
  type: "object",
  properties: {
    mode,
    handler,
    max_retries: maxRetries,
    active,
    action: {
      ...actionPattern,
      description: `The action whose events are delivered from now on; ${PATTERNS}`,
    },
    bearer,
    bearer_token: bearerToken,
    ...settings,
  },
  additionalProperties: false,
};

export const SECRET_ROTATION = bodySchema("SecretRotation", {
  overlap_ms: {
    type: "integer",
    minimum: 0,
    maximum: SUBSCRIPTION_LIMITS.overlapMaxMs,
    default: SUBSCRIPTION_LIMITS.overlapDefaultMs,
    description: "How long the secret before stays valid; 0 ends it at once.",
    examples: [3_600_000],
  },
});
export type SecretRotation = BodyOf<typeof SECRET_ROTATION>;

export const SUBSCRIPTION_QUERY = querySchema("SubscriptionQuery", {
  application: byApplication,
  action: {
    ...byAction,
    description:
      "Only those that get the events of this action. A pattern such as `order.*`: only those with this very pattern.",
  },
  active: { type: "boolean", description: "Only active ones, or only paused ones." },
});
export type SubscriptionQuery = QueryOf<typeof SUBSCRIPTION_QUERY>;
