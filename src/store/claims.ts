import type { SubscriptionSettings } from "../domain/subscription-settings.ts";

export interface ClaimRequest {
  readonly nowMs: number;
  readonly leaseMs: number;
  /** By the number of a tier; `shares` says which subscriptions are of it. */
  readonly tiers: readonly TierLimit[];
  /** Most bytes of payload to answer, each event's counted once; one delivery is leased whatever its size. */
  readonly maxPayloadBytes: number;
  /** What subscriptions may have, by rowid. */
  readonly shares: ReadonlyMap<number, Share>;
  /** What one may have that is not named in `shares`. */
  readonly others: Share;
}

export interface TierLimit {
  /** Most deliveries to lease for the subscriptions of this tier; of tier 0, for those of all tiers together. */
  readonly most: number;
  /**
   * Who comes first among those of this tier that have as many leased: the one whose delivery came due last, instead of
   * the one whose delivery is due longest.
   */
  readonly isLatestFirst: boolean;
}

/** What a claim may give one subscription. */
export interface Share {
  /** Its deliveries that are leased already: the fewer, the sooner comes its turn. */
  readonly leased: number;
  /** How many more it may have. */
  readonly room: number;
  /** Whose limit counts for it. */
  readonly tier: number;
}

export interface ClaimAnswer {
  readonly claims: readonly Claim[];
  /**
   * When the next delivery comes due that is not yet, among subscriptions that have room and whose limits are not used
   * up; `undefined` when there is none. An ordered one that has something leased may have one soon.
   */
  readonly nextDueAtMs: number | undefined;
  /** The tiers whose limit was used up before all was leased that may be due of subscriptions that have room. */
  readonly limitedTiers: readonly number[];
}

/** One leased delivery with all that is needed to send it. */
export interface Claim {
  readonly deliveryId: number;
  /** Fences the finish: made anew for each claim. */
  readonly claimId: number;
  /** 1 for the first attempt, then counts up, also over attempts that a crash cut short. */
  readonly attempt: number;
  /** Failed attempts before this one that count against `maxRetries`. */
  readonly failures: number;
  /** Made by a replay, after its event. */
  readonly isLate?: boolean;
  /** The same object in all claims of one answer that are for this event. */
  readonly event: ClaimedEvent;
  /** Likewise. */
  readonly subscription: ClaimedSubscription;
}

export interface ClaimedEvent {
  readonly eventId: number;
  readonly action: string;
  /** `undefined` where what is kept is not what was accepted: nothing can be sent. */
  readonly payload: Uint8Array | undefined;
  readonly timestampedMs: number;
}

export interface ClaimedSubscription {
  readonly subscriptionId: number;
  readonly handler: string;
  readonly maxRetries: number;
  /** `undefined` when what is kept of it cannot be read: nothing can be sent. */
  readonly secret: string | undefined;
  /** The one before, while its overlap lasts. */
  readonly previous?: { readonly secret: string; readonly untilMs: number };
  /** What goes in place of the secret as the bearer: a value of its own, or `null` for none. */
  readonly bearer?: string | null;
  readonly settings: SubscriptionSettings;
}
