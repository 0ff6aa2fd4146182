import type { SubscriptionSettings } from "./subscription-settings.ts";

/** Binds an application and a subscription name to an action and to the handler its events are sent to. */
export interface Subscription extends SubscriptionSettings {
  readonly rowid: number;
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly handler: string;
  readonly max_retries: number;
  readonly active: boolean;
  /** Why the service itself deactivated it; `null` while active or when a person paused it. */
  readonly disabled_reason: string | null;
  readonly bearer: Bearer;
  /** While its secret is being rotated: until when the one before is signed with as well; else `null`. */
  readonly previous_secret_until: string | null;
  /** ISO 8601 UTC; when the first attempt after the last success failed, `null` when the last attempt went well. */
  readonly failing_since: string | null;
  /**
   * ISO 8601 UTC; as its handler asked, or as it only ever refuses, or as it is ordered and waits for a retry, no attempt
   * begins before this except one that a person asks for. It may have passed.
   */
  readonly slowed_until: string | null;
  /**
   * Rowid of the delivery that an ordered one which blocks waits for: it has used up its retries and is tried on. `null`
   * while none has.
   */
  readonly blocked_by: number | null;
  readonly timestamped: string;
}

/** What the `Authorization: Bearer` of its deliveries carries: its secret, a value of its own, or there is no such header. */
export const BEARERS = ["secret", "own", "none"] as const;
export type Bearer = (typeof BEARERS)[number];

/** The only form in which a secret leaves the service: the answer that created or rotated it. */
export interface SubscriptionWithSecret extends Subscription {
  readonly secret: string;
}

/** What deleting one did. */
export interface CancelledMeta {
  /** Deliveries that waited. One under way then ends as usual, and is cancelled as well if it fails. */
  readonly cancelled: number;
}

export interface NewSubscription extends Partial<SubscriptionSettings> {
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly handler: string;
  /** 0 to 20, default 5. */
  readonly max_retries?: number;
  readonly active?: boolean;
  readonly bearer?: Bearer;
  /** Makes `bearer` `own`; never shown again. */
  readonly bearer_token?: string;
}

/** What is left out stays as it is; a setting that is `null` goes. */
export interface SubscriptionUpdate extends Partial<SubscriptionSettings> {
  readonly handler?: string;
  readonly max_retries?: number;
  readonly active?: boolean;
  readonly action?: string;
  readonly bearer?: Bearer;
  readonly bearer_token?: string;
}

export interface SecretRotation {
  /** How long the secret before stays valid, in milliseconds: 0 to 30 days, default a day. */
  readonly overlap_ms?: number;
}

export interface SubscriptionQuery {
  readonly application?: string;
  readonly action?: string;
  readonly active?: boolean;
}

const DAY_MS = 86_400_000;

export const SUBSCRIPTION_LIMITS = {
  retriesDefault: 5,
  retriesMax: 20,
  handlerLength: 2_048,
  bearerTokenLength: 1_024,
  overlapDefaultMs: DAY_MS,
  overlapMaxMs: 30 * DAY_MS,
} as const;

/** The retries of a new subscription that names none: one for each wait of its schedule. */
export function retriesUnlessSaid({ retry_schedule: waitsMs }: Partial<SubscriptionSettings>): number {
  return waitsMs?.length ?? SUBSCRIPTION_LIMITS.retriesDefault;
}
