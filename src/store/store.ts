import type { Action, ActionRevision } from "../domain/action.ts";
import type { Delivery, DeliveryWithAttempts } from "../domain/delivery.ts";
import type { Backup } from "../domain/operations.ts";
import type { Replay } from "../domain/replay.ts";
import type { Subscription } from "../domain/subscription.ts";
import type { Token } from "../domain/token.ts";
import type {
  ActionChange,
  ActionRecord,
  ActionSelection,
  RevisionSelection,
  StoredAction,
  SubscriptionPatch,
  SubscriptionRecord,
  SubscriptionSelection,
} from "./catalog.ts";
import type {
  EventRecord,
  EventSelection,
  ExpiredEvents,
  ExpiredSelection,
  RecordOutcome,
  RemovedEvents,
  StoredEvent,
} from "./events.ts";
import type { CommitCounts } from "./health.ts";
import type {
  AttemptResult,
  Backlog,
  ClaimAnswer,
  ClaimRequest,
  DeliverySelection,
  FinishAnswer,
  FinishOptions,
} from "./queue.ts";
import type {
  EventRange,
  ReplayPlan,
  ReplayProgress,
  ReplayRequest,
  ReplaySelector,
  ReplayStep,
  RunningReplay,
} from "./replays.ts";

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
  /**
   * Which data this is: the same at every opening of it, and another for every other store, also for one that a backup of
   * this was restored to.
   */
  readonly dataId: string;

  // Actions
  /** `conflict` when the name is taken. */
  createAction(input: ActionRecord, nowMs: number): Promise<Action>;
  findAction(name: string): Promise<StoredAction | undefined>;
  /** By name, from the one that comes after `after`; `applications` limits to what a token may see. */
  listActions(query: ActionSelection): Promise<readonly Action[]>;
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
  /** The oldest first, from the one that comes after `after`. */
  listSubscriptions(query: SubscriptionSelection): Promise<readonly Subscription[]>;
  /**
   * Changes the members given. Turning `active` off holds its unfinished deliveries that are not under way; turning it
   * on makes held ones due as they were and clears `disabled_reason`. Turning it on (also when it is on) and another
   * `handler` clear `slowed_until` and `failing_since`. Another action ends its running replay. Turning `ordered` on puts
   * what waits in order, and off takes it out, `conflict` when that is too much; off clears `slowed_until`. From `block` to `skip`, or
   * with fewer retries where it skips, its first fails that has none left. `conflict` and `not_found` as at create.
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
  /** How many of its deliveries are unfinished and not under way; of a deleted one, which were cancelled. No write waits for it. */
  countWaiting(subscription: number): Promise<number>;

  // Deliveries
  listDeliveries(query: DeliverySelection): Promise<readonly Delivery[]>;
  findDelivery(id: number): Promise<DeliveryWithAttempts | undefined>;
  /**
   * Makes a `failed`, `filtered`, `waiting` or `delivered` one due now with all its retries, before all others of its subscription
   * and also while that is slowed; `conflict` from any other state.
   */
  retryDelivery(id: number, nowMs: number): Promise<Delivery | undefined>;
  /**
   * Fails one for good that has failed so far and is not under way; where its ordered subscription waited for it, that goes
   * on. `conflict` for any other.
   */
  skipDelivery(id: number, nowMs: number): Promise<Delivery | undefined>;

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
   * once, as its retry is waited for by `wait`; a success ends that. One that blocks never lets go what was not delivered.
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
  /** With `managedAtMs` `conflict` where it is the last one that has the scope `admin` at that time. */
  revokeToken(id: number, managedAtMs?: number): Promise<Token | undefined>;
  /** Notes last uses; loses nothing that matters when skipped. */
  touchTokens(uses: readonly { rowid: number; atMs: number }[]): Promise<void>;

  // Backup
  /**
   * Copies everything as it is at one moment after the call, while writes go on; whoever asked closes the copy. One at a
   * time: `conflict` while another one is open. `unavailable` when there is no room for it.
   */
  backup(signal?: AbortSignal): Promise<Backup>;

  // Condition
  /**
   * The events that were found damaged since the store was opened: what is kept of them is not what was accepted. Of very
   * many, the first thousand. Asks nothing of the engine behind.
   */
  damagedEvents(): readonly number[];
  /** Active subscriptions to which nothing is delivered, as what is kept of them or their deliveries cannot be read. */
  unreadableSubscriptions(): readonly number[];
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

export interface TokenRecord {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly hash: string;
  readonly expiresAtMs?: number;
}
