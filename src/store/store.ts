import type { Actor } from "../domain/audit.ts";
import type { Backup, Node } from "../domain/operations.ts";
import type { Token } from "../domain/token.ts";
import type { AuditStore, StatsStore, ReplayStore } from "./history.ts";
import type { CatalogStore } from "./catalog.ts";
import type { EventStore } from "./events.ts";
import type { DeliveryQueue } from "./queue.ts";

/**
 * Stores everything.
 *
 * Each method is one atomic call: it happened durably when its promise resolves, and not at all when it rejects. Times are
 * milliseconds since the epoch. Rejections are `EvregError`s: the codes named at each method, or `unavailable` while the engine
 * cannot commit. Every engine must pass `test/contract/store.ts`.
 *
 * Changes that take `by`, the one who makes them, keep that in the same call, see `AuditStore`.
 *
 * A store has the actions of `domain/service-events.ts`. While they have an active subscription, their events are recorded in the
 * call that they report, and whoever opened the store is notified.
 */
export interface Store {
  /** Identifies the data: the same at every opening. A restored backup has another. */
  readonly dataId: string;
  /** Whether the data were made by this opening, so that nothing has happened before. */
  readonly isNew: boolean;
  readonly catalog: CatalogStore;
  readonly events: EventStore;
  readonly queue: DeliveryQueue;
  readonly replays: ReplayStore;
  readonly tokens: TokenStore;
  readonly audit: AuditStore;
  readonly stats: StatsStore;
  readonly node: StoreNode;
  /** A store whose data are in a database has it. */
  readonly database?: DatabaseAdmin;
  /**
   * Copies everything as it is at one moment after the call, while writes go on; the caller closes the copy. `conflict` while
   * another one is open, `unavailable` when there is no space for it. A store whose data are in a file of this machine has it.
   */
  backup?(signal?: AbortSignal): Promise<Backup>;
  /** The events that were found damaged since the store was opened; at most the first thousand. */
  damagedEvents(): readonly number[];
  /** Answers what the last commits showed. */
  health(): StoreCondition;
  /** Waits for what is in progress, then closes the engine. Safe to call twice. */
  close(): Promise<void>;
}

/** What of the data is this process's to do, where several have them open. */
export interface StoreNode {
  /**
   * A higher one after each change that others have made to actions, subscriptions or tokens: what was read before it is of no use
   * any more. A change is answered only once all others have it.
   * @throws EvregError `unavailable` while nobody knows here what others have changed
   */
  version(): number;
  /**
   * The subscriptions that were changed since this was asked last, maybe by this process. To be asked by the delivery engine alone.
   * @throws EvregError as `version`
   */
  takeChanged(): readonly number[];
  /** Whether this process sends the deliveries of the subscription. */
  owns(subscription: number): boolean;
  /** Whether this process does what is to be done once, such as removing what is too old. */
  hasDuties(): boolean;
  /** Whether all servers on the data have the same value of a setting, such as `retention.events`. */
  isAlike(setting: string): Promise<boolean>;
  /** The others who have the data open; left out where there can be none. */
  readonly others?: OtherNodes;
}

/** What nodes let each other know that the data do not show. */
export interface OtherNodes {
  /** Says whether this node receives what others broadcast, see `StoreChange.received`. Resolves once it gets all that they broadcast from then on. */
  receive(isWanted: boolean): Promise<void>;
  /** Sends a change to those that receive, as JSON. */
  broadcast(change: object): void;
}

/** What a store did besides what it was asked to do. A hint, which may be lost. */
export interface StoreChange {
  /** How many service events were recorded, and how many deliveries with them; these are due at once. */
  readonly serviceEvents?: { readonly events: number; readonly deliveries: number } | undefined;
  /** Deliveries that failed for good without an attempt. */
  readonly failed?: number | undefined;
  /** Others who have the data open have written something, or deliveries of theirs are this process's now. */
  readonly others?: boolean;
  /** What others have broadcast, as JSON, each in its order. */
  readonly received?: readonly string[];
  /** Others have to know of a change before it is answered: which version of what they keep in memory has it. */
  readonly version?: number | undefined;
}

interface TokenStore {
  create(input: TokenRecord, nowMs: number, by?: Actor): Promise<Token>;
  /** Finds a token by its SHA-256, in hex. */
  find(hash: string): Promise<Token | undefined>;
  list(): Promise<readonly Token[]>;
  /** @param keepsAdmin whether the last token that has the scope `admin` now is refused, with `conflict` */
  revoke(id: number, keepsAdmin: boolean, nowMs: number, by?: Actor): Promise<Token | undefined>;
  recordUse(id: number, atMs: number): Promise<void>;
}

/** The database that a store has its data in, and who has it open. */
interface DatabaseAdmin {
  /** The nodes in the order of their starts. */
  nodes(): Promise<readonly Node[]>;
  inspect(): Promise<DatabaseFacts>;
}

/** What of a database may need a person. */
export interface DatabaseFacts {
  /** The version of PostgreSQL, such as `18.4`. */
  readonly version: string;
  readonly bytes: number;
  /** The settings that are off, and without which a crash of it loses what was acknowledged. */
  readonly risks: readonly string[];
  /** The settings that nodes which run have different values of. */
  readonly differing: readonly string[];
}

export interface StoreCondition {
  readonly status: "ok" | "unavailable" | "closed";
  /** Why the store is not ok, as a sentence. */
  readonly reason?: string;
}

export interface TokenRecord extends Pick<Token, "name" | "scopes"> {
  readonly hash: string;
  readonly expiresAtMs?: number;
}
