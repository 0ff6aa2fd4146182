import type { Backup } from "../domain/operations.ts";
import type { Token } from "../domain/token.ts";
import type { CatalogStore } from "./catalog.ts";
import type { EventStore } from "./events.ts";
import type { DeliveryQueue, ServiceEventCounts } from "./queue.ts";
import type { ReplayStore } from "./replays.ts";

/**
 * Where everything is kept, in tasks.
 *
 * Each method is one atomic call: it happened durably when its promise resolves, or not at all when it rejects. Time is
 * always passed in, in milliseconds since the epoch. Rejections are `EvregError`s: the codes named at each method, or
 * `unavailable` while the engine behind cannot commit. A second engine must pass `test/contract/store.ts`.
 *
 * A new store has the actions of `domain/service-events.ts`. What they tell of is recorded in the same call as what
 * happened, like a published event, while they have an active subscription; whoever opened the store is notified.
 */
export interface Store {
  /**
   * Which data this is: the same at every opening of it, and another for every other store, also for one that a backup of
   * this was restored to.
   */
  readonly dataId: string;
  readonly catalog: CatalogStore;
  readonly events: EventStore;
  readonly queue: DeliveryQueue;
  readonly replays: ReplayStore;
  readonly tokens: TokenStore;
  readonly admin: StoreAdmin;
  /** Waits for what was begun, then lets go of the engine behind. Safe to call twice. */
  close(): Promise<void>;
}

/** What a store did beside what it was asked to do. A hint: it may be lost, as with a store that several processes share. */
export interface StoreChange {
  /** Events about the service itself were recorded, with their deliveries that are due. */
  readonly serviceEvents?: ServiceEventCounts;
  /** Deliveries that failed for good by a change of their subscription, not by an attempt. */
  readonly failed?: number;
}

export interface TokenStore {
  create(input: TokenRecord, nowMs: number): Promise<Token>;
  /** By the SHA-256 of the token, in hex. */
  find(hash: string): Promise<Token | undefined>;
  list(): Promise<readonly Token[]>;
  /** With `managedAtMs` `conflict` where it is the last one that has the scope `admin` at that time. */
  revoke(id: number, managedAtMs?: number): Promise<Token | undefined>;
  /** Notes last uses; loses nothing that matters when skipped. */
  recordUses(uses: readonly { rowid: number; atMs: number }[]): Promise<void>;
}

/** The store itself: its copies and its health. */
interface StoreAdmin {
  /**
   * Copies everything as it is at one moment after the call, while writes go on; whoever asked closes the copy. One at a
   * time: `conflict` while another one is open. `unavailable` when there is no room for it.
   */
  backup(signal?: AbortSignal): Promise<Backup>;
  /**
   * The events that were found damaged since the store was opened: what is kept of them is not what was accepted. Of very
   * many, the first thousand. Asks nothing of the engine behind.
   */
  damagedEvents(): readonly number[];
  /** Active subscriptions to which nothing is delivered, as what is kept of them or their deliveries cannot be read. */
  unreadableSubscriptions(): readonly number[];
  /** What the last commits showed; asks nothing of the engine behind. */
  health(): StoreCondition;
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
