import type {
  Action,
  ActionRevision,
  ActionSample,
  ActionUpdate,
  NewAction,
  PayloadVerdict,
  RevisionQuery,
  SchemaCandidate,
  SchemaVerdict,
  WarningMeta,
} from "./domain/action.ts";
import type { AuditEntry, AuditQuery } from "./domain/audit.ts";
import type {
  AttemptQuery,
  Delivery,
  DeliveryQuery,
  DeliveryWithAttempts,
  SubscriptionAttempt,
} from "./domain/delivery.ts";
import type { EvregError } from "./domain/error.ts";
import type {
  BatchOptions,
  BatchResult,
  DeprecatedMeta,
  Event,
  EventQuery,
  NewEvent,
  PageMeta,
} from "./domain/event.ts";
import type { HandlerTest } from "./domain/webhook.ts";
import type {
  Attention,
  AttentionMeta,
  AttentionQuery,
  Backup,
  Finding,
  FindingsMeta,
  Node,
  NodesMeta,
  Health,
} from "./domain/operations.ts";
import type { BatchItem } from "./domain/publish-body.ts";
import type { RawJson } from "./json/raw-json.ts";
import type { FinishedPull, NewClaim, PulledDelivery, PullResults } from "./domain/pull.ts";
import type { NewReplay, Replay, ReplayCount, ReplayQuery } from "./domain/replay.ts";
import type {
  CancelledMeta,
  ConsumersMeta,
  NewSubscription,
  RotationMeta,
  SecretRotation,
  Subscription,
  SubscriptionQuery,
  SubscriptionUpdate,
  SubscriptionWithSecret,
} from "./domain/subscription.ts";
import type { Stats, StatsQuery } from "./domain/stats/stats.ts";
import type { StreamMessage, StreamQuery } from "./domain/stream.ts";
import type { Identity, NewToken, Token, TokenWithSecret } from "./domain/token.ts";

/** The envelope of every success, the same as the HTTP body. */
export interface Answer<T, M = undefined> {
  readonly data: T;
  readonly meta?: M;
}

/** An event that was published, or the earlier one with the same idempotency key. */
export interface Published extends Answer<Event, DeprecatedMeta> {
  /** True when nothing new was stored: the key was used before, with the same action and payload. */
  readonly replayed: boolean;
}

/**
 * All that evreg can do.
 *
 * `service/` does it on a data folder, `client/` asks a server over HTTP. No caller can tell which it has: one contract
 * suite (`test/contract`) tests both. Every failure is an `EvregError`. Besides the codes named at each method, any may fail
 * with `unauthorized`, `forbidden` (scope too small), `unavailable` (the store cannot commit) and, over HTTP, `unreachable`.
 */
export interface Evreg {
  readonly actions: ActionsPort;
  readonly events: EventsPort;
  readonly subscriptions: SubscriptionsPort;
  readonly deliveries: DeliveriesPort;
  readonly replays: ReplaysPort;
  readonly tokens: TokensPort;
  readonly audit: AuditPort;
  health(): Promise<Answer<Health>>;
  /** Who is asking, for what it may ask, and of which data. Needs no scope. */
  whoami(): Promise<Answer<Identity>>;
  /**
   * What happened in the last minutes, hours or days, in steps of time, and what is unfinished now. Needs `read`; of its own
   * applications only. `malformed` for a query that cannot be.
   */
  stats(query?: StatsQuery): Promise<Answer<Stats>>;
  /** Counts and measurements since the start, in the text format of Prometheus. Needs `read` for all applications. */
  metrics(): Promise<string>;
  /**
   * What happens from now on, or since some time: events as they are published and, by `topics`, results of deliveries. Needs
   * `read`; shows what lists show. `malformed` for a query that cannot be, `unavailable` when too many are open.
   */
  stream(query?: StreamQuery, options?: StreamOptions): Promise<ChangeStream>;
  /**
   * What of subscriptions needs a person: the gravest first, and of each kind what has lasted longest. Needs `read`. Bounded,
   * and cheap however many deliveries there are. `malformed` for a query that cannot be.
   */
  attention(query?: AttentionQuery): Promise<{ data: readonly Attention[]; meta: AttentionMeta }>;
  /** The processes that have the data open, in the order of their starts. Needs `admin` for all applications. */
  nodes(): Promise<{ data: readonly Node[]; meta: NodesMeta }>;
  /**
   * Checks the store, folder, clock, tokens, handlers and backlog. Needs `admin` for all applications. What is wrong is a
   * finding, not a failure.
   */
  doctor(): Promise<{ data: readonly Finding[]; meta: FindingsMeta }>;
  /**
   * A copy of the data file, made while events are published and delivered; the caller closes it. Needs `admin` for all
   * applications. `conflict` while another one is made or read.
   * @param signal ends the making of it
   */
  backup(signal?: AbortSignal): Promise<Backup>;
  /** Closes connections or the data folder. Safe to call twice. */
  close(): Promise<void>;
}

export interface StreamOptions {
  /** Ends the stream. */
  readonly signal?: AbortSignal;
  /** The client calls it over HTTP when the connection broke and will be made again, with why. */
  readonly disconnected?: (error: EvregError) => void;
}

/**
 * A stream that was opened; whoever reads it reads to the end, breaks off, or closes it. Events come in the order of their
 * rowids, each once, none left out: where a reader is too slow they are read from the store. Over HTTP it connects again by
 * itself and goes on where it was.
 */
export interface ChangeStream extends AsyncIterable<StreamMessage> {
  /** Where it is: as `since` of another stream it goes on after what was read. Moves on also where nothing is shown. */
  readonly id: string;
  /** Reads the messages in lists of those that came together. */
  batches(): AsyncIterable<readonly StreamMessage[]>;
  close(): Promise<void>;
}

export interface ActionsPort {
  /** All actions, by name. */
  list(query?: { application?: string }): Promise<Answer<readonly Action[]>>;
  /**
   * `invalid` for a bad name or schema and for a name that begins with `evreg.`, which the service's own events have;
   * `conflict` when the name is taken.
   * @param signal ends the check of the schema, before anything is changed
   */
  create(input: NewAction, signal?: AbortSignal): Promise<Answer<Action, WarningMeta>>;
  /** `not_found`. */
  get(name: string): Promise<Answer<Action>>;
  /**
   * Changes an action. Another schema becomes the next revision; equal values change nothing. To protect less than before
   * needs scope `admin`. `conflict` with `details.changes` for a schema that breaks someone whom the action's
   * `compatibility` protects, `not_found` (also for a successor), `invalid` (also for the service's own actions).
   * @param options `compatibility: "none"` applies a breaking change all the same; needs scope `admin`
   * @param signal as at create
   */
  update(
    name: string,
    input: ActionUpdate,
    options?: { compatibility?: "none" },
    signal?: AbortSignal,
  ): Promise<Answer<Action, WarningMeta>>;
  /** All its schemas, newest first. `not_found`. */
  revisions(name: string, query?: RevisionQuery): Promise<Answer<readonly ActionRevision[]>>;
  /** `not_found`. */
  revision(name: string, revision: number): Promise<Answer<ActionRevision>>;
  /**
   * What an update with this schema would do, and whether the last events conform to it. Changes nothing.
   * `not_found`, `invalid`; `unavailable` when earlier checks take too long.
   * @param signal ends it
   */
  check(name: string, candidate: SchemaCandidate, signal?: AbortSignal): Promise<Answer<SchemaVerdict>>;
  /**
   * Whether a payload conforms to the schema in force: what publishing it would find. Stores nothing. Needs `read` or
   * `publish`. `not_found`; `gone` for a retired action; `malformed`, `invalid` and `too_large` for what is no payload of any
   * action.
   * @param signal ends it where the payload takes long to check
   */
  validate(name: string, payload: RawJson, signal?: AbortSignal): Promise<Answer<PayloadVerdict>>;
  /**
   * A made-up payload that conforms to the schema in force, the same for the same schema. `not_found`; `invalid` where none was found; `unavailable` when
   * earlier ones take too long.
   */
  sample(name: string): Promise<Answer<ActionSample>>;
}

export interface EventsPort {
  /**
   * Resolves once the event and its deliveries are durable. `not_found` (unknown action), `gone` (retired action),
   * `invalid` (payload against schema; an action of the service itself), `too_large`, `malformed`, `conflict` (idempotency
   * key used with another body).
   */
  publish(input: NewEvent): Promise<Published>;
  /**
   * Publishes 1 to 1,000 items; accepts the valid ones and reports the others. An item may be the error that reading it
   * gave. `unavailable` where nothing can be stored now.
   * @param signal ends it where a payload takes long to check, with its reason; what was stored by then stays
   */
  publishBatch(
    items: readonly BatchItem[],
    options?: BatchOptions,
    signal?: AbortSignal,
  ): Promise<BatchResult>;
  /**
   * `malformed` for a query that cannot be, `invalid` for a `where` that is no schema; `unavailable` when earlier searches
   * take too long.
   * @param signal ends a search by `where`
   */
  list(query?: EventQuery, signal?: AbortSignal): Promise<{ data: readonly Event[]; meta: PageMeta }>;
  /** `not_found`. */
  get(id: number): Promise<Answer<Event>>;
  /** Where one event went. `not_found`. */
  deliveries(id: number): Promise<Answer<readonly Delivery[]>>;
}

export interface SubscriptionsPort {
  list(query?: SubscriptionQuery): Promise<Answer<readonly Subscription[]>>;
  /**
   * `not_found` (action), `conflict` (application, subscription and action taken), `invalid`. An action such as `order.*`, or
   * `*`, stands for all that there are and will be, and needs `read` or `write` for all applications. It has the secret of
   * others of its application and name. `meta` warns of what in a filter is probably a slip.
   * @param signal ends the check of the filter, before anything is changed
   */
  create(input: NewSubscription, signal?: AbortSignal): Promise<Answer<SubscriptionWithSecret, WarningMeta>>;
  /** `not_found`. Of a pull subscription `meta` counts the consumers that wait, where a server runs. */
  get(id: number): Promise<Answer<Subscription, ConsumersMeta>>;
  /**
   * Pausing holds unfinished deliveries; reactivating resumes them. A filter applies to all deliveries that have not begun.
   * `not_found`, `conflict`, `invalid`; `meta` and `signal` as at create.
   */
  update(
    id: number,
    input: SubscriptionUpdate,
    signal?: AbortSignal,
  ): Promise<Answer<Subscription, WarningMeta>>;
  /**
   * Gives it, and all others of its application and name, a new secret, which only this answer shows; `meta` says how many
   * have it. Until the overlap ends, deliveries are signed with the previous one as well. `not_found`, `invalid`; `conflict`
   * for an overlap while another one lasts.
   */
  rotateSecret(id: number, input?: SecretRotation): Promise<Answer<SubscriptionWithSecret, RotationMeta>>;
  /**
   * Sends its handler one signed request outside the queue, with `X-Evreg-Test: true`, and answers what it was and what came
   * back. Stored nowhere, never repeated, and sent also while it is paused or its filter would exclude the payload; how the
   * handler fares does not count. `not_found`, `invalid` (the payload against the schema; not the subscription's action; a
   * subscription without a handler), `too_large`, `rate_limited` while others are tested, `unavailable` where no engine runs.
   */
  test(id: number, input: NewEvent): Promise<Answer<HandlerTest>>;
  /**
   * Leases deliveries of a pull subscription that are due, or waits for the first. None after `wait_ms`. They are signed, and
   * have the filter applied, as those to a handler. `not_found`, `invalid` (also for one of mode `push`), `rate_limited` when
   * too many wait, `unavailable` without a running server.
   * @param signal ends the wait, and leases nothing
   */
  claim(id: number, input?: NewClaim, signal?: AbortSignal): Promise<Answer<readonly PulledDelivery[]>>;
  /**
   * Stores what became of claimed deliveries, or extends their leases; answers an outcome for each, in order. A failed one is
   * retried, and counts, as a failed attempt to reach a handler does. `not_found`, `invalid` (also for what is no lease of this
   * subscription), `unavailable` (give them again: what was stored is fenced then).
   */
  finish(id: number, input: PullResults): Promise<Answer<readonly FinishedPull[]>>;
  /**
   * Its last attempts that have ended, newest first by their start. Of one with a long backlog some may be left out.
   * `not_found`.
   */
  attempts(id: number, query?: AttemptQuery): Promise<Answer<readonly SubscriptionAttempt[]>>;
  /** Answers the deleted record; `meta` counts the unfinished deliveries that were cancelled. `not_found`. */
  delete(id: number): Promise<Answer<Subscription, CancelledMeta>>;
}

export interface DeliveriesPort {
  /** Newest first. */
  list(query?: DeliveryQuery): Promise<Answer<readonly Delivery[]>>;
  /** Reads a delivery with its attempts. `not_found`. */
  get(id: number): Promise<Answer<DeliveryWithAttempts>>;
  /** Sends it again now with all its retries. `not_found`; `conflict` while it is pending, under way, held or cancelled. */
  retry(id: number): Promise<Answer<Delivery>>;
  /**
   * Gives up a delivery that has failed so far, so that its ordered subscription goes on. `not_found`; `conflict` while it is
   * under way, before it has failed, and after it has ended.
   */
  skip(id: number): Promise<Answer<Delivery>>;
}

/** Sending many past events to one subscription, as a job that a running server does in the background. */
export interface ReplaysPort {
  /** Counts what a replay would send now. `not_found` (subscription), `invalid`. */
  count(subscription: number, input: NewReplay): Promise<Answer<ReplayCount>>;
  /** Begins one, and does not wait for it. `not_found`, `invalid`; `conflict` while another of the subscription runs. */
  start(subscription: number, input: NewReplay): Promise<Answer<Replay>>;
  /** Newest first. */
  list(query?: ReplayQuery): Promise<Answer<readonly Replay[]>>;
  /** `not_found`. */
  get(id: number): Promise<Answer<Replay>>;
  /** Deliveries that it made due already are sent all the same. `not_found`; `conflict` after it has ended. */
  cancel(id: number): Promise<Answer<Replay>>;
}

/** Who changed actions, subscriptions, tokens and the rest, and when. Needs `admin` for all applications. */
export interface AuditPort {
  /** Newest first. `malformed` for a query that cannot be. */
  list(query?: AuditQuery): Promise<Answer<readonly AuditEntry[]>>;
}

export interface TokensPort {
  list(): Promise<Answer<readonly Token[]>>;
  /** Only this answer shows the token itself. `invalid`. */
  create(input: NewToken): Promise<Answer<TokenWithSecret>>;
  /** Answers the revoked token's record. Its own needs no scope. `not_found`. */
  revoke(id: number): Promise<Answer<Token>>;
}
