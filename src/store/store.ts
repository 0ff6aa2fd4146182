import type { Action, ActionRevision, ActionSettings, Schemata } from "../domain/action.ts";
import type { CompatibilityRule } from "../domain/compatibility.ts";
import type { AttemptErrorCode, Delivery, DeliveryStatus, DeliveryWithAttempts } from "../domain/delivery.ts";
import type { Event } from "../domain/event.ts";
import type { Replay, ReplaySelection, ReplayStatus } from "../domain/replay.ts";
import type { SubscriptionSettings } from "../domain/subscription-settings.ts";
import type { Bearer, Subscription } from "../domain/subscription.ts";
import type { Token } from "../domain/token.ts";
import type { CommitCounts } from "./commit-counts.ts";

/**
 * Where everything is kept, in tasks.
 *
 * Each method is one atomic call: it happened durably when its promise resolves, or not at all when it rejects. Time is
 * always passed in, in milliseconds since the epoch. Rejections are `EvregError`s: the codes named at each method, or
 * `unavailable` while the engine behind cannot commit. A second engine must pass `test/contract/store.ts`.
 *
 * A new store has the actions of `domain/service-events.ts`. What they tell of is recorded in the same call as what
 * happened, like a published event, while they have an active subscription; who opened the store hears of it.
 */
export interface Store {
  // Actions
  /** `conflict` when the name is taken. */
  createAction(input: ActionRecord, nowMs: number): Promise<Action>;
  findAction(name: string): Promise<StoredAction | undefined>;
  /** By name; `applications` limits to what a token may see. */
  listActions(query: { application?: string; applications?: readonly string[] }): Promise<readonly Action[]>;
  /**
   * Applies a change. A schema or an application makes the next revision, settings make none. `stale` when the action was
   * changed since `basedOnEdition`; `not_found` by `undefined`.
   */
  reviseAction(input: ActionChange, nowMs: number): Promise<Action | "stale" | undefined>;
  /** `undefined` when there is no such action or revision. */
  findRevision(action: string, revision: number): Promise<ActionRevision | undefined>;
  /** Newest first; `after` walks on to those older than it. None when there is no such action. */
  listRevisions(query: RevisionSelection): Promise<readonly ActionRevision[]>;

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

  // Retention
  /**
   * Looks through events of a stretch of time for those that have no unfinished delivery (`pending`, `waiting`, `held` or
   * `delivering`), in the order of their rowids. Holds up no write.
   */
  findExpired(query: ExpiredSelection): Promise<ExpiredEvents>;
  /**
   * Deletes events with their deliveries and attempts, in the order given, until a short transaction has enough: ask
   * again with those that were not `handled`. One that has an unfinished delivery by now stays; one that is gone counts
   * as handled.
   */
  removeEvents(eventIds: readonly number[]): Promise<RemovedEvents>;

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
   * `handler` clear `slowed_until` and `failing_since`. Another action ends its running replay. Turning `ordered` on puts
   * what waits in order, `conflict` when that is too much; from `block` to `skip` its first fails that has no retries
   * left. `conflict` and `not_found` as at create.
   */
  updateSubscription(id: number, patch: SubscriptionPatch, nowMs: number): Promise<Subscription | undefined>;
  /**
   * Puts a new secret in force; the one before stays valid for the overlap. `conflict` for an overlap while another one
   * lasts: of two secrets that receivers may have, neither must go unasked.
   */
  rotateSecret(
    id: number,
    rotation: { secret: string; overlapMs: number },
    nowMs: number,
  ): Promise<Subscription | undefined>;
  /**
   * Cancels its unfinished deliveries and its running replay; those and its history stay listable, and its secrets are
   * gone.
   */
  deleteSubscription(id: number, nowMs: number): Promise<Subscription | undefined>;

  // Deliveries
  listDeliveries(query: DeliverySelection): Promise<readonly Delivery[]>;
  findDelivery(id: number): Promise<DeliveryWithAttempts | undefined>;
  /**
   * Makes a `failed`, `filtered`, `waiting` or `delivered` one due now with all its retries, before all others of its subscription
   * and also while that is slowed; `conflict` from any other state.
   */
  retryDelivery(id: number, nowMs: number): Promise<Delivery | undefined>;

  // Replays
  /** What a replay of a living subscription would go through: the events of its action there are now. */
  planReplay(query: ReplayRequest): Promise<ReplayPlan | undefined>;
  /** Counts what the front of the plan would send, as long as a fraction of a second allows, and answers what is left. */
  countReplay(plan: ReplayPlan): Promise<{ count: number; rest: readonly EventRange[] }>;
  /**
   * Records a replay, running from now on. `conflict` while another one of the subscription runs, or when that has
   * another action by now; `undefined` when it was deleted meanwhile.
   */
  startReplay(plan: ReplayPlan, nowMs: number): Promise<Replay | undefined>;
  /**
   * Makes the next of its deliveries due, as far as there is room, and notes how far it has come, in one transaction:
   * a step that was done is never repeated.
   */
  stepReplay(id: number, step: ReplayStep): Promise<ReplayProgress>;
  runningReplays(): Promise<readonly RunningReplay[]>;
  findReplay(id: number): Promise<Replay | undefined>;
  /** Newest first. */
  listReplays(query: ReplaySelector): Promise<readonly Replay[]>;
  /** What it made due stays so. A cancelled one is answered as it is; `conflict` when it ended otherwise. */
  cancelReplay(id: number, nowMs: number): Promise<Replay | undefined>;

  // The engine's tasks
  /**
   * Leases due deliveries, shared fairly over subscriptions: those that have the fewest leased come first. An ordered
   * subscription gets nothing while any of its deliveries is leased; then its first in the order of publication, after those
   * that persons asked for. Whoever claims them begins the next only when the finish of the one before is stored.
   */
  claimDue(request: ClaimRequest): Promise<ClaimAnswer>;
  /**
   * Records finished attempts and moves their deliveries on. Fenced: a result whose `claimId` is no longer the
   * delivery's is refused. Deactivates the subscriptions whose handlers are gone or have failed for too long.
   * With a subscription that is ordered by then, one that is to be sent again keeps its place in the order and is due at
   * once, as its retry is waited for by `slow`; a success ends that. One that blocks never lets go what was not delivered.
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
  /** What is unfinished. Its cost has a bound that does not grow with what there is, and no write waits for it. */
  countBacklog(nowMs: number): Promise<Backlog>;
  /** What committing took since the store was opened; asks nothing of the engine behind. */
  commits(): CommitCounts;
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

/** Unfinished deliveries, each in one of the parts; those of deleted subscriptions in none. */
export interface Backlog {
  /** To be sent now. `sinceMs`: when the first of them came due. */
  readonly due: BacklogPart;
  /** To be sent at a time to come. */
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

export interface ActionRecord extends Partial<CompatibilityRule> {
  readonly action: string;
  readonly application: string;
  readonly schemata: Schemata;
}

export interface StoredAction extends Action {
  /** The rowid again, under the name the tasks use. */
  readonly actionId: number;
  /** Whether its events are published by evreg about itself, see `domain/service-events.ts`. */
  readonly isBuiltIn: boolean;
  /** Counts its changes, those of settings too, from 1. */
  readonly edition: number;
  /** Since when it is deprecated. */
  readonly deprecatedMs: number | null;
}

export interface ActionChange {
  readonly action: string;
  readonly schemata?: Schemata;
  readonly application?: string;
  readonly settings?: Partial<ActionSettings>;
  readonly basedOnEdition: number;
}

export interface RevisionSelection {
  readonly action: string;
  readonly limit: number;
  readonly after?: number;
}

export interface EventRecord {
  readonly actionId: number;
  /**
   * The revision the payload was validated against; the record is refused as `stale` when another is in force, or the
   * action is retired.
   */
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
  /** The action's schema moved on, or it was retired: load it again, validate again. */
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

export interface ExpiredSelection {
  /** Inclusive; from the first event on without. */
  readonly fromMs?: number;
  /** Exclusive. */
  readonly beforeMs: number;
  /** Only events with larger rowids. */
  readonly after?: number;
  /** How many events to look at. */
  readonly most: number;
}

export interface ExpiredEvents {
  /** Rowids of those found, rising. */
  readonly events: readonly number[];
  /** Where to go on; `undefined` when there are no more to look at. */
  readonly after: number | undefined;
}

export interface RemovedEvents {
  /** How many of those given are done with, from the first on. */
  readonly handled: number;
  /** Deleted by this call. */
  readonly events: number;
  readonly deliveries: number;
}

export interface SubscriptionRecord {
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly handler: string;
  readonly maxRetries: number;
  readonly active: boolean;
  readonly secret: string;
  /** The secret, unless given. */
  readonly bearer?: BearerSetting;
  /** None, unless given. */
  readonly settings?: Partial<SubscriptionSettings>;
}

export type BearerSetting =
  | { readonly kind: Exclude<Bearer, "own"> }
  | { readonly kind: "own"; readonly token: string };

export interface SubscriptionPatch {
  readonly handler?: string;
  readonly maxRetries?: number;
  readonly active?: boolean;
  readonly action?: string;
  readonly bearer?: BearerSetting;
  /** Those that change. */
  readonly settings?: Partial<SubscriptionSettings>;
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

export interface ReplayRequest {
  readonly subscription: number;
  readonly selection: ReplaySelection;
  readonly fromMs: number;
  /** Without it, all events from `fromMs` on that there are. */
  readonly toMs?: number;
}

/** Rowids of events, both ends included. */
export interface EventRange {
  readonly low: number;
  readonly high: number;
}

export interface ReplayPlan extends ReplayRequest {
  readonly actionId: number;
  /** Rising. */
  readonly ranges: readonly EventRange[];
}

export interface ReplayStep {
  readonly nowMs: number;
  /** Makes so many due at most, and only until the subscription has so many that are. */
  readonly mostDue: number;
  /** Nothing is made due while the subscription has so many unfinished deliveries, due or waiting for a retry. */
  readonly mostUnfinished: number;
  /** To be noted as what there is to send. */
  readonly total?: number;
}

export interface ReplayProgress {
  /** Deliveries made due by this step. */
  readonly queued: number;
  /**
   * `going`: there is more to do at once; `crowded`: the subscription has enough to do for now; `paused`: its subscription
   * is not active; `ended`: it does not run any more.
   */
  readonly state: "going" | "crowded" | "paused" | "ended";
}

export interface RunningReplay {
  readonly rowid: number;
  /** With what is left of its ranges. */
  readonly plan: ReplayPlan;
  /** `null` until it was counted; before that, no step was made. */
  readonly total: number | null;
}

export interface ReplaySelector {
  readonly subscription?: number;
  readonly status?: ReplayStatus;
  readonly applications?: readonly string[];
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
  /** A subscription is deactivated when its attempts have failed throughout for so long, see `domain/failing.ts`. */
  readonly disableAfterMs?: number;
}

export interface FinishAnswer {
  /** In order, whether each result was applied. */
  readonly applied: readonly boolean[];
  /** The subscriptions that were deactivated by this call. */
  readonly deactivated: readonly Deactivated[];
}

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
  /** Kept back by its subscription's filter: it has ended without an attempt. */
  | { readonly kind: "filtered" }
  /** Never begun: all is as if the delivery had not been claimed. */
  | { readonly kind: "unsent" };

export interface TokenRecord {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly hash: string;
  readonly expiresAtMs?: number;
}
