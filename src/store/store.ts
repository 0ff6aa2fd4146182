import type { Action, Schemata } from "../domain/action.ts";
import type { AttemptErrorCode, Delivery, DeliveryStatus, DeliveryWithAttempts } from "../domain/delivery.ts";
import type { Event } from "../domain/event.ts";
import type { Subscription } from "../domain/subscription.ts";
import type { Token } from "../domain/token.ts";

/**
 * Where everything is kept, in tasks.
 *
 * Each method is one atomic call: it happened durably when its promise resolves, or not at all when it rejects. Time is
 * always passed in, in milliseconds since the epoch. Rejections are `EvregError`s: the codes named at each method, or
 * `unavailable` while the engine behind cannot commit. A second engine must pass `test/contract/store.ts`.
 */
export interface Store {
  // Actions
  /** `conflict` when the name is taken. */
  createAction(input: ActionRecord, nowMs: number): Promise<Action>;
  findAction(name: string): Promise<StoredAction | undefined>;
  /** By name; `applications` limits to what a token may see. */
  listActions(query: { application?: string; applications?: readonly string[] }): Promise<readonly Action[]>;
  /** Applies the next revision. `stale` when `basedOnRevision` is no longer the one in force; `not_found` by `undefined`. */
  reviseAction(input: ActionRevision, nowMs: number): Promise<Action | "stale" | undefined>;

  // Events
  /**
   * Records each event with one delivery per active subscription of its action, in one transaction for the call.
   * Answers an outcome an event, in order. With `atomic`, one outcome that is neither recorded nor replayed makes all
   * others `withheld`, and nothing is stored. Without, the end of a batch that makes very many deliveries is `deferred`,
   * so that no call holds up the others for long; the first event never is.
   */
  recordEvents(
    batch: readonly EventRecord[],
    nowMs: number,
    options?: { atomic?: boolean },
  ): Promise<readonly RecordOutcome[]>;
  listEvents(query: EventSelection): Promise<{ events: readonly StoredEvent[]; total: number }>;
  findEvent(id: number): Promise<StoredEvent | undefined>;

  // Subscriptions
  /** `conflict` when (application, subscription, action) is taken, `not_found` when the action does not exist. */
  createSubscription(input: SubscriptionRecord, nowMs: number): Promise<Subscription>;
  findSubscription(id: number): Promise<Subscription | undefined>;
  listSubscriptions(query: {
    application?: string;
    action?: string;
    active?: boolean;
    applications?: readonly string[];
  }): Promise<readonly Subscription[]>;
  /**
   * Changes the members given. Turning `active` off holds its unfinished deliveries that are not under way; turning it
   * on makes held ones due as they were and clears `disabled_reason`. Turning it on (also when it is on) and another
   * `handler` clear `slowed_until` and `failing_since`. `conflict` and `not_found` as at create.
   */
  updateSubscription(
    id: number,
    patch: { handler?: string; maxRetries?: number; active?: boolean; action?: string },
    nowMs: number,
  ): Promise<Subscription | undefined>;
  /** Cancels its unfinished deliveries; those and its history stay listable. */
  deleteSubscription(id: number, nowMs: number): Promise<Subscription | undefined>;

  // Deliveries
  listDeliveries(query: DeliverySelection): Promise<readonly Delivery[]>;
  findDelivery(id: number): Promise<DeliveryWithAttempts | undefined>;
  /**
   * Makes a `failed`, `waiting` or `delivered` one due now with all its retries, before all others of its subscription
   * and also while that is slowed; `conflict` from any other state.
   */
  retryDelivery(id: number, nowMs: number): Promise<Delivery | undefined>;

  // The engine's tasks
  /** Leases due deliveries, shared fairly over subscriptions: those that have the fewest leased come first. */
  claimDue(request: ClaimRequest): Promise<ClaimAnswer>;
  /**
   * Records finished attempts and moves their deliveries on. Fenced: a result whose `claimId` is no longer the
   * delivery's is refused. Deactivates the subscriptions whose handlers are gone or have failed for too long.
   */
  finishAttempts(
    results: readonly AttemptResult[],
    nowMs: number,
    options?: FinishOptions,
  ): Promise<FinishAnswer>;
  /** Makes deliveries due again whose lease ended; their attempt is recorded as `returned`. Answers how many. */
  releaseExpired(nowMs: number): Promise<number>;

  // Tokens
  createToken(input: TokenRecord, nowMs: number): Promise<Token>;
  /** By the SHA-256 of the token, in hex. */
  findToken(hash: string): Promise<Token | undefined>;
  listTokens(): Promise<readonly Token[]>;
  revokeToken(id: number): Promise<Token | undefined>;
  /** Notes last uses; loses nothing that matters when skipped. */
  touchTokens(uses: readonly { rowid: number; atMs: number }[]): Promise<void>;

  // Condition
  /** What the last commits showed; asks nothing of the engine behind. */
  condition(): StoreCondition;
  /** Waits for what was begun, then lets go of the engine behind. Safe to call twice. */
  close(): Promise<void>;
}

export interface StoreCondition {
  readonly status: "ok" | "unavailable" | "closed";
  /** A sentence, when not ok. */
  readonly reason?: string;
}

export interface ActionRecord {
  readonly action: string;
  readonly application: string;
  readonly schemata: Schemata;
}

export interface StoredAction extends Action {
  /** The rowid again, under the name the tasks use. */
  readonly actionId: number;
}

export interface ActionRevision {
  readonly action: string;
  readonly schemata: Schemata;
  readonly application?: string;
  readonly basedOnRevision: number;
}

export interface EventRecord {
  readonly actionId: number;
  /** The revision the payload was validated against; the record is refused as `stale` when another is in force. */
  readonly revision: number;
  readonly payload: Uint8Array;
  readonly idempotencyKey?: string;
}

export type RecordOutcome =
  | {
      readonly kind: "recorded";
      readonly rowid: number;
      readonly timestampedMs: number;
      readonly deliveries: number;
    }
  /** The key was used before with the same action and payload, whatever revision this record names. */
  | {
      readonly kind: "replayed";
      readonly rowid: number;
      readonly timestampedMs: number;
      readonly revision: number;
    }
  /** The key was used before with another action or payload, by the event `rowid`. */
  | { readonly kind: "key_conflict"; readonly rowid: number }
  /** The action's schema moved on: load it again, validate again. */
  | { readonly kind: "stale" }
  /** Nothing wrong with this one; another in an atomic batch was refused. */
  | { readonly kind: "withheld" }
  /** Not looked at: those before it were enough for one transaction. To be recorded by another call. */
  | { readonly kind: "deferred" };

/** An event whose payload is still bytes; the service makes a `RawJson` of it. */
export type StoredEvent = Omit<Event, "payload"> & {
  readonly payload: Uint8Array;
  readonly application: string;
};

export interface EventSelection {
  readonly action?: string;
  readonly applications?: readonly string[];
  readonly fromMs?: number;
  readonly toMs?: number;
  readonly order: "asc" | "desc";
  readonly limit: number;
  /** From 1; ignored with `after`. */
  readonly page: number;
  readonly after?: number;
}

export interface SubscriptionRecord {
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly handler: string;
  readonly maxRetries: number;
  readonly active: boolean;
  readonly secret: string;
}

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
   * up; `undefined` when there is none.
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
  /** The same object in all claims of one answer that are for this event. */
  readonly event: ClaimedEvent;
  /** Likewise. */
  readonly subscription: ClaimedSubscription;
}

export interface ClaimedEvent {
  readonly eventId: number;
  readonly action: string;
  readonly payload: Uint8Array;
  readonly timestampedMs: number;
}

export interface ClaimedSubscription {
  readonly subscriptionId: number;
  readonly handler: string;
  readonly secret: string;
  readonly maxRetries: number;
}

export interface FinishOptions {
  /** A subscription is deactivated when its attempts have failed throughout for so long, see `domain/failing.ts`. */
  readonly disableAfterMs?: number;
}

export interface FinishAnswer {
  /** In order, whether each result was applied. */
  readonly applied: readonly boolean[];
  /** The subscriptions that were deactivated by this call. */
  readonly deactivated: readonly Deactivated[];
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
  readonly next: NextStep;
  /** When a connection was made for it. */
  readonly connection?: ConnectionTimes;
  /** The subscription gets no attempt before `untilMs`, except one that a person asks for, unless it has left `handler`. */
  readonly slow?: { readonly untilMs: number; readonly handler: string };
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
  /** Never begun: all is as if the delivery had not been claimed. */
  | { readonly kind: "unsent" };

export interface TokenRecord {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly hash: string;
  readonly expiresAtMs?: number;
}
