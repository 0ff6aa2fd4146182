import type { EvregError } from "../domain/error.ts";
import type { Event } from "../domain/event.ts";

/** Events, and the deliveries that are made with them. */
export interface EventStore {
  /**
   * Records each event with one delivery per active subscription of its action. Answers an outcome an event, in order.
   * With `atomic`, one outcome that is neither recorded nor replayed makes all others `withheld`, and nothing is stored.
   * Without, a batch that makes very many deliveries is recorded in several transactions, so that it holds up no other
   * call for long. Where one of them fails after others were committed, the events left are `failed`.
   */
  record(
    batch: readonly EventRecord[],
    nowMs: number,
    options?: { atomic?: boolean },
  ): Promise<readonly RecordOutcome[]>;
  list(query: EventSelection): Promise<{ events: readonly StoredEvent[]; total: number }>;
  find(id: number): Promise<StoredEvent | undefined>;
  /**
   * Looks through the events of a time range for those that have no unfinished delivery (`pending`, `waiting`, `held` or
   * `delivering`), in the order of their rowids. Holds up no write.
   */
  findExpired(query: ExpiredSelection): Promise<ExpiredEvents>;
  /**
   * Deletes events with their deliveries and attempts, in the order given, until a short transaction has enough: ask
   * again with those that were not `handled`. One that has an unfinished delivery by now stays; one that is gone counts
   * as handled.
   */
  remove(eventIds: readonly number[]): Promise<RemovedEvents>;
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
  /** Whether it only looks for an event that used the key: where there is none it is `stale`, and nothing is stored. */
  readonly lookupOnly?: boolean;
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
  /** Not stored, though others of the call were. */
  | { readonly kind: "failed"; readonly error: EvregError };

/** An event whose payload is still bytes; the service makes a `RawJson` of it. */
export type StoredEvent = Omit<Event, "payload"> & {
  /** `undefined` where what is kept is not what was accepted: see `Store.damagedEvents`. */
  readonly payload: Uint8Array | undefined;
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
