import type { AttemptErrorCode, DeliveryStatus } from "../domain/delivery.ts";
import type { SubscriptionSettings } from "../domain/subscription-settings.ts";
import type { Delivery, DeliveryWithAttempts } from "../domain/delivery.ts";

/** Deliveries: leased, finished and looked at. */
export interface DeliveryQueue {
  /**
   * Leases due deliveries, shared fairly over subscriptions: those that have the fewest leased come first. An ordered
   * subscription gets nothing while any of its deliveries is leased; then its first in the order of publication, after those
   * that persons asked for. Whoever claims them begins the next only when the finish of the one before is stored.
   */
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  /**
   * Records finished attempts and moves their deliveries on. Answers an outcome for each, in order. Fenced: a result whose
   * `claimId` is no longer the delivery's is refused. Deactivates the subscriptions whose handlers are gone or have failed
   * for too long. With a subscription that is ordered by then, one that is to be sent again keeps its place in the order
   * and is due at once, as its retry is waited for by `wait`; a success ends that. One that blocks never lets go what was
   * not delivered. After `unavailable` some may be stored: given again, those are fenced.
   */
  finish(
    results: readonly AttemptResult[],
    nowMs: number,
    options?: FinishOptions,
  ): Promise<readonly FinishOutcome[]>;
  /** Makes deliveries due again whose lease ended; their attempt is recorded as `returned`. Answers how many. */
  releaseExpired(nowMs: number): Promise<number>;

  list(query: DeliverySelection): Promise<readonly Delivery[]>;
  find(id: number): Promise<DeliveryWithAttempts | undefined>;
  /**
   * Makes a `failed`, `filtered`, `waiting` or `delivered` one due now with all its retries, before all others of its subscription
   * and also while that is slowed; `conflict` from any other state.
   */
  retry(id: number, nowMs: number): Promise<Delivery | undefined>;
  /**
   * Fails one for good that has failed so far and is not under way; where its ordered subscription waited for it, that goes
   * on. `conflict` for any other.
   */
  skip(id: number, nowMs: number): Promise<Delivery | undefined>;
  /** How many of its deliveries are unfinished and not under way; of a deleted one, which were cancelled. No write waits for it. */
  countPending(subscription: number): Promise<number>;
  /** What is unfinished. Its cost has a bound that does not grow with what there is, and no write waits for it. */
  backlog(nowMs: number): Promise<Backlog>;
}

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

export interface FinishOptions {
  /** A subscription is deactivated when its attempts have failed throughout for so long, see `domain/retry.ts`. */
  readonly disableAfterMs?: number;
}

export type FinishOutcome =
  | {
      readonly kind: "stored";
      /** Of its delivery now; `pending` for one that is to be sent again. */
      readonly state: "pending" | "delivered" | "failed" | "filtered";
      /** Its subscription was deactivated by that. */
      readonly deactivated?: Deactivated;
    }
  /** Another claim holds the delivery by now, or this result was stored before. */
  | { readonly kind: "fenced" };

/** Events that the service recorded about itself in one call. */
export interface ServiceEventCounts {
  readonly events: number;
  /** Made with them, all due at once. */
  readonly deliveries: number;
}

export interface Deactivated {
  readonly subscriptionId: number;
  readonly reason: string;
}

export interface AttemptResult {
  readonly deliveryId: number;
  readonly claimId: number;
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly statusCode?: number;
  readonly errorCode?: AttemptErrorCode;
  /** At most 1 KiB of text without NUL. */
  readonly response?: string;
  /** Beside `address_refused`, where there is no answer: which address, and why. Kept as the answer would be. */
  readonly refusal?: string;
  readonly next: NextStep;
  /** When a connection was made for it. */
  readonly connection?: ConnectionTimes;
  /** The subscription gets no attempt before `untilMs`, except one that a person asks for, unless it has left `handler`. */
  readonly slow?: Wait;
  /** The same where the subscription is ordered by then and this one keeps its place: all behind it wait for its retry. */
  readonly wait?: Wait;
}

interface Wait {
  readonly untilMs: number;
  readonly handler: string;
}

/** Where the time of an attempt went that had a connection made for it. */
export interface ConnectionTimes {
  /** `undefined` where the handler's host is an address. */
  readonly dnsMs: number | undefined;
  /** TCP and TLS. */
  readonly connectMs: number;
  /** From the request to the beginning of the answer; `undefined` when none came. */
  readonly firstByteMs: number | undefined;
}

export type NextStep =
  | { readonly kind: "delivered" }
  /** Failed; due again then (`held` instead when the subscription is paused by now). */
  | { readonly kind: "retry"; readonly atMs: number }
  /** Failed for the last time. */
  | { readonly kind: "failed" }
  /**
   * Failed for the last time as `handler` is gone, and the subscription is deactivated with this reason, holding its
   * other deliveries. When it has another handler by now it stays active, and this one is due again at once while it
   * has retries left.
   */
  | { readonly kind: "gone"; readonly reason: string; readonly handler: string }
  /** Not carried to an end (stopping): due again now, and it does not count against the retries. */
  | { readonly kind: "returned" }
  /** Excluded by its subscription's filter: it has ended without an attempt. */
  | { readonly kind: "filtered" }
  /** Never begun: all is as if the delivery had not been claimed. */
  | { readonly kind: "unsent" };

export interface DeliverySelection {
  readonly event?: number;
  readonly subscription?: number;
  readonly action?: string;
  readonly status?: DeliveryStatus;
  readonly applications?: readonly string[];
  readonly fromMs?: number;
  readonly toMs?: number;
  readonly limit: number;
  readonly after?: number;
}

/** Unfinished deliveries, each in one of the parts; those of deleted subscriptions in none. */
export interface Backlog {
  /**
   * To be sent now, and nothing else of their subscriptions is under way. `sinceMs`: when the first of them came due; an
   * ordered one, when it was made or had waited its time.
   */
  readonly due: BacklogPart;
  /** The same behind others of their subscriptions that are under way: for what a handler takes at once, or may have. */
  readonly busy: BacklogPart;
  /** The same of subscriptions with a rate limit, busy or not, which may have to wait for it. */
  readonly paced: BacklogPart;
  /** To be sent at a time to come, once its subscription is not slowed any more, or after another that comes before it. */
  readonly waiting: BacklogPart;
  /** Leased. `sinceMs`: since when the first of them is. */
  readonly delivering: BacklogPart;
  /** Of paused subscriptions. `sinceMs`: when the first of them came due. */
  readonly held: BacklogPart;
  /** Whether all were counted. Otherwise there are at least as many of each as it says. */
  readonly isWhole: boolean;
}

interface BacklogPart {
  readonly deliveries: number;
  /** Milliseconds since the epoch; `undefined` where there is none, or no such time. */
  readonly sinceMs: number | undefined;
}
