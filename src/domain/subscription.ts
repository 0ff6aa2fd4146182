/** Binds an application and a subscription name to an action and to the handler its events are sent to. */
export interface Subscription {
  readonly rowid: number;
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly handler: string;
  readonly max_retries: number;
  readonly active: boolean;
  /** Why the service itself deactivated it; `null` while active or when a person paused it. */
  readonly disabled_reason: string | null;
  /** ISO 8601 UTC; when the first attempt after the last success failed, `null` when the last attempt went well. */
  readonly failing_since: string | null;
  /**
   * ISO 8601 UTC; as its handler asked, or as it only ever refuses, no attempt begins before this except one that a person
   * asks for. It may have passed.
   */
  readonly slowed_until: string | null;
  readonly timestamped: string;
}

/** The only form in which a secret leaves the service: the answer that created it. */
export interface SubscriptionWithSecret extends Subscription {
  readonly secret: string;
}

export interface NewSubscription {
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly handler: string;
  /** 0 to 20, default 5. */
  readonly max_retries?: number;
  readonly active?: boolean;
}

export interface SubscriptionUpdate {
  readonly handler?: string;
  readonly max_retries?: number;
  readonly active?: boolean;
  readonly action?: string;
}

export interface SubscriptionQuery {
  readonly application?: string;
  readonly action?: string;
  readonly active?: boolean;
}

export const SUBSCRIPTION_LIMITS = { retriesDefault: 5, retriesMax: 20, handlerLength: 2_048 } as const;
