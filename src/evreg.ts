import type {
  Action,
  ActionRevision,
  ActionUpdate,
  Deprecation,
  NewAction,
  RevisionQuery,
  SchemaCandidate,
  SchemaVerdict,
  WarningMeta,
} from "./domain/action.ts";
import type { Delivery, DeliveryQuery, DeliveryWithAttempts } from "./domain/delivery.ts";
import type { BatchOptions, BatchResult, Event, EventQuery, NewEvent, PageMeta } from "./domain/event.ts";
import type { Backup, Finding, FindingsMeta, Health } from "./domain/operations.ts";
import type { BatchItem } from "./domain/publish-body.ts";
import type { NewReplay, Replay, ReplayCount, ReplayQuery } from "./domain/replay.ts";
import type {
  CancelledMeta,
  NewSubscription,
  SecretRotation,
  Subscription,
  SubscriptionQuery,
  SubscriptionUpdate,
  SubscriptionWithSecret,
} from "./domain/subscription.ts";
import type { Identity, NewToken, Token, TokenWithSecret } from "./domain/token.ts";

/** The envelope of every success, the same as the HTTP body. */
export interface Answer<T, M = undefined> {
  readonly data: T;
  readonly meta?: M;
}

/** An event that was published, or the earlier one its idempotency key stands for. */
export interface Published {
  readonly data: Event;
  /** True when nothing new was stored: the key had been used with the same action and payload. */
  readonly replayed: boolean;
  /** Of the action, while it is deprecated. */
  readonly deprecation?: Deprecation;
}

/**
 * All that evreg can do.
 *
 * `service/` does it on a data folder, `client/` asks another evreg over HTTP; a caller cannot tell which it has, and
 * one contract suite (`test/contract`) holds both to the words here. Every failure is an `EvregError`. Besides the
 * codes named at each method, any may fail with `unauthorized`, `forbidden` (scope too small), `unavailable` (the store
 * cannot commit) and, over HTTP, `unreachable`.
 */
export interface Evreg {
  readonly actions: ActionsPort;
  readonly events: EventsPort;
  readonly subscriptions: SubscriptionsPort;
  readonly deliveries: DeliveriesPort;
  readonly replays: ReplaysPort;
  readonly tokens: TokensPort;
  health(): Promise<Answer<Health>>;
  /** Who is asking, for what it may ask, and of which data. Needs no scope. */
  whoami(): Promise<Answer<Identity>>;
  /**
   * What the server has counted and measured since it started, in the text format of Prometheus. Needs `read` for all
   * applications.
   */
  metrics(): Promise<string>;
  /**
   * Looks at the service and at what it runs on: its store, folder and clock, tokens, handlers and what waits. Needs
   * `admin` for all applications. That something is wrong is no failure but a finding.
   */
  doctor(): Promise<{ data: readonly Finding[]; meta: FindingsMeta }>;
  /**
   * A copy of the whole data folder's file, made while events are published and delivered; whoever asked closes it. It
   * holds all there is, so it needs `admin` for all applications. `conflict` while another one is made or read.
   * @param signal ends the making of it
   */
  backup(signal?: AbortSignal): Promise<Backup>;
  /** Gives back what the port holds (connections, the data folder). Safe to call twice. */
  close(): Promise<void>;
}

export interface ActionsPort {
  /** All actions, by name. */
  list(query?: { application?: string }): Promise<Answer<readonly Action[]>>;
  /**
   * `invalid` for a bad name or schema and for a name that begins with `evreg.`, which are events of the service itself;
   * `conflict` when the name is taken.
   * @param signal gives it up; while its schema was looked at, nothing has been changed
   */
  create(input: NewAction, signal?: AbortSignal): Promise<Answer<Action, WarningMeta>>;
  /** `not_found`. */
  get(name: string): Promise<Answer<Action>>;
  /**
   * Changes an action. Another schema becomes the next revision; what is as it was changes nothing.
   * `conflict` with `details.changes` for a schema that breaks someone whom the action's `compatibility` protects,
   * `not_found` (also for a successor), `invalid` (also for the service's own). To protect less than before needs scope `admin`.
   * @param options `compatibility: "none"` applies a breaking change all the same; needs scope `admin`
   * @param signal as at create
   */
  update(
    name: string,
    input: ActionUpdate,
    options?: { compatibility?: "none" },
    signal?: AbortSignal,
  ): Promise<Answer<Action, WarningMeta>>;
  /** The schemas it has had, newest first. `not_found`. */
  revisions(name: string, query?: RevisionQuery): Promise<Answer<readonly ActionRevision[]>>;
  /** `not_found`. */
  revision(name: string, revision: number): Promise<Answer<ActionRevision>>;
  /**
   * What an update with this schema would do, and whether the last events conform to it; changes nothing.
   * `not_found`, `invalid`; `unavailable` when checks that were asked for before take too long.
   * @param signal ends it
   */
  check(name: string, candidate: SchemaCandidate, signal?: AbortSignal): Promise<Answer<SchemaVerdict>>;
}

export interface EventsPort {
  /**
   * Resolves once the event and its deliveries are durable.
   * `not_found` (unknown action), `gone` (retired action), `invalid` (payload against schema; an action of the service
   * itself), `too_large`, `malformed`,
   * `conflict` (idempotency key used with another body).
   */
  publish(input: NewEvent): Promise<Published>;
  /**
   * Publishes 1 to 1,000 items; the valid ones are accepted, the others reported.
   * An entry that could not even be read is passed as its error and keeps its place among the results; a line that was not
   * read yet is read where it is taken in. `conflict` with the field `data_id` where `options` name other data.
   * @param signal ends it where a payload takes long to check, with its reason; what was stored by then stays
   */
  publishBatch(
    items: readonly BatchItem[],
    options?: BatchOptions,
    signal?: AbortSignal,
  ): Promise<BatchResult>;
  /** `malformed` for a query that cannot be. */
  list(query?: EventQuery): Promise<{ data: readonly Event[]; meta: PageMeta }>;
  /** `not_found`. */
  get(id: number): Promise<Answer<Event>>;
  /** Where one event went. `not_found`. */
  deliveries(id: number): Promise<Answer<readonly Delivery[]>>;
}

export interface SubscriptionsPort {
  list(query?: SubscriptionQuery): Promise<Answer<readonly Subscription[]>>;
  /**
   * `not_found` (action), `conflict` (application, subscription and action taken), `invalid`. With a filter, `meta` tells
   * what in it is probably a slip.
   * @param signal gives it up; while its filter was looked at, nothing has been changed
   */
  create(input: NewSubscription, signal?: AbortSignal): Promise<Answer<SubscriptionWithSecret, WarningMeta>>;
  /** `not_found`. */
  get(id: number): Promise<Answer<Subscription>>;
  /**
   * `not_found`, `conflict`, `invalid`. Pausing holds unfinished deliveries; reactivating resumes them. A filter goes for
   * all deliveries that have not begun; `meta` as at create.
   * @param signal as at create
   */
  update(
    id: number,
    input: SubscriptionUpdate,
    signal?: AbortSignal,
  ): Promise<Answer<Subscription, WarningMeta>>;
  /**
   * Gives it a new secret, which is only ever in this answer; deliveries are signed with the one before as well until
   * the overlap ends. `not_found`, `invalid`; `conflict` for an overlap while another one lasts.
   */
  rotateSecret(id: number, input?: SecretRotation): Promise<Answer<SubscriptionWithSecret>>;
  /** Answers the deleted record; its unfinished deliveries are cancelled, and `meta` tells how many. `not_found`. */
  delete(id: number): Promise<Answer<Subscription, CancelledMeta>>;
}

export interface DeliveriesPort {
  /** Newest first. */
  list(query?: DeliveryQuery): Promise<Answer<readonly Delivery[]>>;
  /** With its attempts. `not_found`. */
  get(id: number): Promise<Answer<DeliveryWithAttempts>>;
  /** Sends it again now with all its retries. `not_found`; `conflict` while it is pending, under way, held or cancelled. */
  retry(id: number): Promise<Answer<Delivery>>;
  /**
   * Gives one up that has failed so far: it is `failed`, and what its ordered subscription held back for it goes on.
   * `not_found`; `conflict` while it is under way, when it has not failed yet, and when it has ended.
   */
  skip(id: number): Promise<Answer<Delivery>>;
}

/** Sending many events of the past to one subscription, as a job that a running server carries on in the background. */
export interface ReplaysPort {
  /** Counts what a replay would send now. `not_found` (subscription), `invalid`. */
  count(subscription: number, input: NewReplay): Promise<Answer<ReplayCount>>;
  /** Begins one, and does not wait for it. `not_found`, `invalid`; `conflict` while another of the subscription runs. */
  start(subscription: number, input: NewReplay): Promise<Answer<Replay>>;
  /** Newest first. */
  list(query?: ReplayQuery): Promise<Answer<readonly Replay[]>>;
  /** `not_found`. */
  get(id: number): Promise<Answer<Replay>>;
  /** What it handed to delivery is sent all the same. `not_found`; `conflict` when it has ended by itself. */
  cancel(id: number): Promise<Answer<Replay>>;
}

export interface TokensPort {
  list(): Promise<Answer<readonly Token[]>>;
  /** The token itself is only ever in this answer. `invalid`. */
  create(input: NewToken): Promise<Answer<TokenWithSecret>>;
  /** Answers the revoked token's record. `not_found`. */
  revoke(id: number): Promise<Answer<Token>>;
}
