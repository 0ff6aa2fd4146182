import type { DeliveryCounts } from "../domain/delivery.ts";
import type { EvregError } from "../domain/error.ts";
import type { Event, EventQuery } from "../domain/event.ts";
import type { Claim, RecordClaim } from "./queue.ts";

/** Events, and the deliveries that are made with them. */
export interface EventStore {
  /**
   * Records each event with one delivery per active subscription of its action. Answers an outcome per event, in order. Its time
   * is never before that of the event before it, see `DeliveryQueue.moveWaits`.
   * With `atomic`, one refused event makes all others `left_out`, and nothing is stored; it rejects with `too_large` for more than
   * `EVENT_LIMITS.atomicDeliveries`. Without, a batch that makes very many
   * deliveries takes several transactions, so that it delays no other call for long; if one fails after others were
   * committed, the remaining events are `failed`. With `claim`, the deliveries that the first recorded event makes for its
   * subscriptions are leased at once; not those of ordered subscriptions and of ones that wait.
   */
  record(
    batch: readonly EventRecord[],
    nowMs: number,
    options?: RecordOptions,
  ): Promise<readonly RecordOutcome[]>;
  /**
   * Lists events by their rowids. These are given in the order of commits, so whoever goes on after the last one, oldest first,
   * misses none. A page costs about the same wherever it begins.
   */
  list(query: EventSelection): Promise<EventPage>;
  /** Lists one event at most; goes before lists that wait. */
  first(query: EventSelection & { readonly limit: 1 }): Promise<EventPage>;
  find(id: number): Promise<StoredEvent | undefined>;
  /** Counts the deliveries of each of these events to these applications, or to all. Delays no write. */
  countDeliveries(
    ids: readonly number[],
    applications?: readonly string[],
  ): Promise<readonly DeliveryCounts[]>;
  /**
   * Removes a bounded portion of the range's events that have no unfinished delivery, with their deliveries and attempts. Delays
   * no write for long. Call it again with `next` until that is `undefined`.
   * @param after looks at events with larger rowids only
   */
  removeExpired(range: ExpiredRange, after?: number): Promise<RemovedEvents>;
}

export interface RecordOptions {
  readonly atomic?: boolean;
  readonly claim?: RecordClaim | undefined;
}

export interface EventRecord {
  readonly actionId: number;
  /** The revision that the payload was validated against. `stale` when another is in force, or the action is retired. */
  readonly revision: number;
  readonly payload: Uint8Array;
  readonly idempotencyKey?: string | undefined;
  /** The call only looks for an event that used the key; the outcome is `stale` if there is none. */
  readonly lookupOnly?: boolean | undefined;
}

export type RecordOutcome<C = Claim> =
  | {
      readonly kind: "recorded";
      readonly rowid: number;
      readonly timestampedMs: number;
      readonly deliveries: number;
      /** The deliveries that were leased at once. */
      readonly claims?: readonly C[];
    }
  /** The key was used before with the same action and payload, whatever revision this record names. */
  | {
      readonly kind: "replayed";
      readonly rowid: number;
      readonly timestampedMs: number;
      readonly revision: number;
    }
  /** The application has used the key before with another action or payload, by the event `rowid`. */
  | { readonly kind: "key_conflict"; readonly rowid: number }
  /** The action has a newer schema, or was retired: load it again, validate again. */
  | { readonly kind: "stale" }
  /** Another event of the atomic batch was refused. */
  | { readonly kind: "left_out" }
  /** The event was not stored, though others of the call were. */
  | { readonly kind: "failed"; readonly error: EvregError };

/** An event whose payload is still bytes; the service makes a `RawJson` of it. */
export type StoredEvent = Omit<Event, "payload" | "deliveries"> & {
  /** The payload is `undefined` if it is damaged (see `Store.damagedEvents`), or was not asked for. */
  readonly payload: Uint8Array | undefined;
  readonly application: string;
};

export interface EventPage {
  readonly events: readonly StoredEvent[];
  /** The rowids of all that were looked at: more than `events` where `holding` left some out. */
  readonly ids: readonly number[];
  /** The events of all pages. */
  readonly total: number;
  /** Whether the page has fewer events than it could, as their payloads would be too many bytes. */
  readonly isCut: boolean;
  /** The largest rowid ever given; 0 before the first. */
  readonly newest: number;
  /** The largest rowid and the latest time of the events that retention has removed; 0 where it has removed none. */
  readonly removed: { readonly event: number; readonly ms: number };
}

/** A page is ignored with `after`. */
export interface EventSelection
  extends Pick<EventQuery, "action" | "after">, Required<Pick<EventQuery, "order" | "limit" | "page">> {
  readonly applications?: readonly string[];
  readonly idempotencyKey?: string;
  readonly fromMs?: number;
  readonly toMs?: number;
  /** The most that all payloads of a page come to; it has at least one event. */
  readonly maxBytes?: number;
  /** Whether all that match are counted; by default they are. Only with `after`; the total is 0 where they are not. */
  readonly total?: boolean;
  /** Whether the payloads are read; by default they are. */
  readonly payloads?: boolean;
  /** Leaves out events whose payloads cannot hold a text of each of these lists; `limit` counts them all the same. */
  readonly holding?: readonly (readonly string[])[];
}

/** Rows by their rowids, both ends included. */
export interface RowidRange {
  readonly low: number;
  readonly high: number;
}

export interface ExpiredRange {
  /** The first time of the range; without it, the range begins with the first event. */
  readonly fromMs?: number;
  /** The first time that is not in the range. */
  readonly beforeMs: number;
}

export interface RemovedEvents {
  readonly events: number;
  readonly deliveries: number;
  /** The rowid after which to continue; `undefined` when the whole range was looked at. */
  readonly next: number | undefined;
}
