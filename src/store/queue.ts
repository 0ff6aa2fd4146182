import type { Actor } from "../domain/audit.ts";
import type { BacklogCause, StatsBacklog } from "../domain/stats/stats.ts";
import type {
  AttemptErrorCode,
  Delivery,
  DeliveryQuery,
  DeliveryWithAttempts,
  SubscriptionAttempt,
  TlsReason,
} from "../domain/delivery.ts";
import type { Attention } from "../domain/operations.ts";
import type { SubscriptionSettings } from "../domain/subscription-settings.ts";

/** Deliveries: leased, finished and looked at. */
export interface DeliveryQueue {
  /**
   * Leases due deliveries, shared fairly: subscriptions that have the fewest leased come first. In an order the next delivery is
   * due once the finish of the previous one is stored: the first in the order of publication.
   */
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  /** Leases due deliveries of pull subscriptions for those who take them. */
  claimForConsumers(request: ConsumerRequest): Promise<ConsumerAnswer>;
  /**
   * Records finished attempts, and decides what becomes of their deliveries by the settings in force then, see
   * `rules/finish.ts`. Answers an outcome for each, in order. A result whose `claimId` is no longer the delivery's is fenced:
   * nothing of it is stored. Deactivates the subscriptions whose handlers are gone or have failed for too long. After
   * `unavailable` some may be stored: given again, those are fenced.
   */
  finish(
    results: readonly AttemptResult[],
    nowMs: number,
    options?: FinishOptions,
  ): Promise<readonly FinishOutcome[]>;
  /** Moves the ends of leases. Answers for each whether its claim still has the delivery. */
  extend(leases: readonly LeaseExtension[]): Promise<readonly boolean[]>;
  /**
   * The attempts that consumers of a subscription have under way, for each of these leases in order. `undefined` where the
   * claim does not have the delivery, or the delivery is another subscription's.
   */
  findLeased(
    subscription: number,
    leases: readonly LeaseKey[],
  ): Promise<readonly (LeasedAttempt | undefined)[]>;
  /** Makes deliveries due again whose lease ended; their attempt is recorded as cut short. Answers how many. */
  releaseExpired(nowMs: number): Promise<number>;
  /**
   * Moves what waits, after the clock was set back by so much: what is to come stays as far away as it was, and what is due
   * stays due. Events that are recorded from then on have earlier times than those before. This comes behind all that was asked before, and before all that is asked later. May be repeated with the same
   * `nowMs`.
   * @returns how many deliveries, leases and subscriptions have other times now
   */
  moveWaits(backMs: number, nowMs: number): Promise<number>;

  list(query: DeliverySelection): Promise<readonly Delivery[]>;
  find(id: number): Promise<DeliveryWithAttempts | undefined>;
  /**
   * Makes a `failed`, `filtered`, `waiting` or `delivered` one due now with all its retries, with the first that is due of its
   * subscription, which waits no longer for what its handler asked for. `conflict` from any other state.
   */
  retry(id: number, nowMs: number, by?: Actor): Promise<Delivery | undefined>;
  /**
   * Fails a delivery for good that has failed so far and is not under way; an ordered subscription that waited for it goes on.
   * Rejects with `conflict` for any other.
   */
  skip(id: number, nowMs: number, by?: Actor): Promise<Delivery | undefined>;
  /** Answers what a claim has of a subscription, also of a paused one; `undefined` when there is none. */
  findSendable(id: number): Promise<ClaimedSubscription | undefined>;
  /**
   * Lists the last attempts of a subscription that have ended, newest first by their start. Of a subscription with a long
   * backlog some may be left out.
   */
  attempts(subscription: number, limit: number): Promise<readonly SubscriptionAttempt[]>;
  /**
   * Lists what needs a person, the gravest first, and of each kind what has lasted longest. Its cost is bounded, however many
   * deliveries there are, and it delays no write.
   */
  attention(query: AttentionSelection): Promise<AttentionPage>;
  /**
   * Counts the deliveries of a subscription that are unfinished and not under way, or were cancelled with it. Delays no write.
   */
  countPending(subscription: number): Promise<number>;
  /**
   * Counts what is unfinished. Its cost is bounded, however much there is, and it delays no write.
   * @param selection whose deliveries count; by default all
   */
  backlog(nowMs: number, selection?: StatsSelection): Promise<StatsBacklog>;
}

export interface ClaimRequest {
  readonly nowMs: number;
  readonly leaseMs: number;
  /** The limits of tiers, by the number of the tier; `quotas` says which subscriptions are of it. */
  readonly tiers: readonly TierLimit[];
  /** Each event's payload counts once; one delivery is leased whatever its size. */
  readonly maxPayloadBytes: number;
  /** What each subscription may lease, by its rowid. */
  readonly quotas: readonly (readonly [subscriptionId: number, quota: ClaimQuota])[];
  /** The quota of subscriptions that are not in `quotas`. */
  readonly defaultQuota: ClaimQuota;
}

export interface ConsumerRequest extends Pick<ClaimRequest, "nowMs" | "maxPayloadBytes"> {
  /**
   * The consumers by the rowid of their subscription. The time is stored as that of its last claim, to the minute,
   * deliveries or not.
   */
  readonly consumers: readonly (readonly [subscriptionId: number, consumer: PullConsumer])[];
  /** The most deliveries that are leased for all of them. */
  readonly maxClaims: number;
}

/** Takes deliveries of a pull subscription. Its leases outlive whoever has the store open. */
export interface PullConsumer {
  /** A name for people; stored with the attempts. */
  readonly consumer: string;
  readonly leaseMs: number;
  readonly maxClaims: number;
}

export type LeaseKey = Pick<Claim, "deliveryId" | "claimId">;

export interface LeaseExtension extends LeaseKey {
  readonly untilMs: number;
}

/** What judging the result of an attempt needs. */
export interface LeasedAttempt extends LeaseKey, Pick<Claim, "attempt" | "failures"> {
  readonly claimedMs: number;
  readonly eventId: number;
  readonly action: string;
}

export interface TierLimit {
  /** The most deliveries that are leased for the subscriptions of this tier; in tier 0, for those of all tiers together. */
  readonly maxClaims: number;
  /**
   * Whether, among subscriptions with as many leased, the one whose delivery came due last comes first, not the one that waits
   * longest.
   */
  readonly isNewestFirst: boolean;
}

/** Leases deliveries in the transaction that makes them, see `EventStore.record`. */
export interface RecordClaim {
  /** Rowids of subscriptions that have capacity for one more. */
  readonly subscriptions: readonly number[];
  readonly leaseMs: number;
}

/** What a claim may lease for one subscription. */
export interface ClaimQuota {
  /** How many of its deliveries are leased already; the fewer, the sooner its turn. */
  readonly leased: number;
  /** How many more may be leased. */
  readonly capacity: number;
  readonly tier: number;
}

export interface ClaimAnswer<C = Claim> {
  readonly claims: readonly C[];
  /**
   * When the next delivery comes due of a subscription with capacity in a tier below its limit; `undefined` when there is none.
   */
  readonly nextDueAtMs: number | undefined;
  /** The tiers with more that may be due than their limit allowed. */
  readonly limitedTiers: readonly number[];
}

/** `nextDueAtMs` is that of the subscriptions whose consumers claim. */
export type ConsumerAnswer = Omit<ClaimAnswer, "limitedTiers">;

/** One leased delivery with all that is needed to send it. */
export interface Claim<S = ClaimedSubscription> {
  readonly deliveryId: number;
  /** The id that fences the finish: random, and made anew for each claim. No two consumers of one answer have the same. */
  readonly claimId: number;
  /** The number of the attempt, from 1; attempts that a crash cut short count too. */
  readonly attempt: number;
  /** Failed attempts before this one that count against `maxRetries`. */
  readonly failures: number;
  /** Whether a replay made the delivery, after its event. */
  readonly isFromReplay?: boolean;
  /** All claims of one answer that are for this event have the same object, where evreg sends them. */
  readonly event: ClaimedEvent;
  /** All claims of one answer that are for this subscription have the same object. */
  readonly subscription: S;
}

export interface ClaimedEvent {
  readonly eventId: number;
  readonly action: string;
  /** The payload is `undefined` if it is damaged: nothing can be sent. */
  readonly payload: Uint8Array | undefined;
  readonly timestampedMs: number;
}

export interface ClaimedSubscription {
  readonly subscriptionId: number;
  readonly application: string;
  readonly name: string;
  readonly handler: string;
  readonly maxRetries: number;
  /** The secret is `undefined` if it cannot be read: nothing can be sent. */
  readonly secret: string | undefined;
  /** The previous secret, while its overlap lasts. */
  readonly previous?: { readonly secret: string; readonly untilMs: number };
  /** What is sent as the bearer instead of the secret; `null` for no bearer. */
  readonly bearer?: string | null;
  readonly settings: SubscriptionSettings;
}

/** What the server's configuration says about results. */
export interface FinishOptions {
  /** A subscription is deactivated when its attempts have failed throughout for so long, see `rules/finish.ts`. */
  readonly disableAfterMs?: number;
  /** The schedule of retries for subscriptions that have none of their own; the waits double where it is left out. */
  readonly retryScheduleMs?: readonly number[];
}

export type FinishOutcome<C = Claim> =
  | {
      readonly kind: "stored";
      /** The state of the delivery now; `pending` for one that is to be sent again. */
      readonly state: "pending" | "delivered" | "failed" | "filtered";
      readonly retryAtMs?: number;
      /** Deliveries that waited behind others of the same call, in an order, are due now, and not leased. */
      readonly isNextDue?: true;
      /** The delivery that comes next in its order, see `AttemptResult.nextLeaseMs`. */
      readonly next?: C;
      /** The subscription, if the result deactivated it. */
      readonly deactivated?: Deactivated;
    }
  /** Another claim holds the delivery, or this result was stored before. */
  | { readonly kind: "fenced" };

export interface Deactivated {
  readonly subscriptionId: number;
  readonly reason: string;
}

/**
 * How an attempt ended, or a claim of which no attempt was made.
 *
 * - `delivered`: the handler or the consumer accepted it.
 * - `failed`: it did not, or there was no usable answer.
 * - `gone`: the handler said that it wants nothing any more.
 * - `interrupted`: evreg itself cut the attempt short.
 * - `filtered`: the filter excluded it before an attempt.
 * - `never started`: as if the delivery had not been claimed.
 */
export type AttemptEnding = "delivered" | "failed" | "gone" | "interrupted" | "filtered" | "never started";

/** The facts of an attempt. What becomes of the delivery is decided when they are stored. */
export interface AttemptResult {
  readonly deliveryId: number;
  readonly claimId: number;
  readonly startedAtMs: number;
  readonly durationMs: number;
  /** The time from publishing to a delivery, with all retries and waits; left out where that says nothing of the service. */
  readonly latencyMs?: number;
  readonly ending: AttemptEnding;
  readonly statusCode?: number;
  readonly errorCode?: AttemptErrorCode;
  /** The beginning of the answer: at most 1 KiB of text without NUL. */
  readonly response?: string;
  /** Why TLS failed, with `tls_failed`. It is stored in the place of the answer. */
  readonly tlsReason?: TlsReason;
  /** Which address was refused and why, with `address_refused`. It is stored in the place of the answer. */
  readonly refusal?: string;
  /** The times of the connection, where one was made for the attempt. */
  readonly connection?: ConnectionTimes;
  /** Where an attempt that failed was sent. It says nothing about another handler that the subscription has by now. */
  readonly handler?: string;
  /** The wait that the answer of a failed attempt asked for. */
  readonly retryAfterMs?: number;
  /** The end of a pause that the handler wants: its subscription gets no attempt before then. */
  readonly slowUntilMs?: number;
  /**
   * The store leases what comes next in its order for so long, if that is due once this is stored: a claim for each
   * delivery would take as long as all else that is done for it.
   */
  readonly nextLeaseMs?: number;
  /** A random number in [0, 1) that was drawn for the jitter of a retry; 0 where it is left out. */
  readonly jitter?: number;
}

/** Where the time of an attempt with a new connection went. */
export interface ConnectionTimes {
  /** How long looking up the name took; `undefined` where the handler's host is an address. */
  readonly dnsMs: number | undefined;
  /** How long TCP and TLS took. */
  readonly connectMs: number;
  /** The time from the request to the beginning of the answer; `undefined` when none came. */
  readonly firstByteMs: number | undefined;
}

export interface DeliverySelection extends Omit<DeliveryQuery, "cause" | "from" | "to" | "limit"> {
  /** Selects the deliveries that are unfinished at a time for this cause, as `backlog` counts them then. */
  readonly cause?: { readonly name: BacklogCause; readonly nowMs: number };
  readonly applications?: readonly string[];
  readonly fromMs?: number;
  readonly toMs?: number;
  readonly limit: number;
}

/** Says whose figures are read, or whose backlog; where nothing is named, those of everything. */
export interface StatsSelection {
  readonly applications?: readonly string[] | undefined;
  /** A name or a pattern: of a backlog, it selects the subscriptions that match it, or an action of it. */
  readonly action?: string | undefined;
  readonly subscription?: number | undefined;
}

export interface AttentionSelection extends Pick<DeliverySelection, "applications" | "limit"> {
  readonly nowMs: number;
}

export interface AttentionPage {
  readonly items: readonly Omit<Attention, "found">[];
  readonly total: number;
  readonly subscriptions: number;
}
