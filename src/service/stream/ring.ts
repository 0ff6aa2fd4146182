import type { Action } from "../../domain/action.ts";
import type { Replay } from "../../domain/replay.ts";
import { type DeliveryResult, type RecordChange, STREAM_LIMITS } from "../../domain/stream.ts";
import type { Subscription } from "../../domain/subscription.ts";

/** Something that happened, apart from events. */
export type FeedChange =
  | { readonly topic: "deliveries"; readonly data: DeliveryResult }
  | { readonly topic: "subscriptions"; readonly data: RecordChange<Subscription> }
  | { readonly topic: "actions"; readonly data: RecordChange<Action> }
  | { readonly topic: "replays"; readonly data: RecordChange<Replay> };

export type NumberedChange = FeedChange & {
  /** Changes are numbered from 1 at each start. */
  readonly number: number;
  readonly atMs: number;
};

interface Kept {
  readonly change: NumberedChange;
  readonly bytes: number;
}

/** What a delivery's result takes, about; its names are shared. */
const RESULT_BYTES = 320;

/** The last changes, in memory. */
export class ChangeRing {
  readonly #limits: { readonly changes: number; readonly changeBytes: number };
  /** The changes by number, from the oldest on: the place of number `n` is `n % changes`. */
  readonly #kept: (Kept | undefined)[] = [];
  #first = 1;
  #last = 0;
  #bytes = 0;
  /** All changes since then are kept. */
  #completeSinceMs: number;

  constructor(nowMs: number, limits: { changes: number; changeBytes: number } = STREAM_LIMITS) {
    this.#limits = limits;
    this.#completeSinceMs = nowMs;
  }

  /** The number of the newest; 0 before the first. */
  get last(): number {
    return this.#last;
  }

  get completeSinceMs(): number {
    return this.#completeSinceMs;
  }

  /** Says that the ring lacks some of what happened before this time. */
  incompleteBefore(ms: number): void {
    this.#completeSinceMs = Math.max(this.#completeSinceMs, ms);
  }

  add(change: FeedChange, atMs: number): void {
    this.#last += 1;
    const bytes = change.topic === "deliveries" ? RESULT_BYTES : 2 * JSON.stringify(change.data).length;
    const { changes, changeBytes } = this.#limits;
    this.#bytes += bytes;
    while (this.#last - this.#first >= changes) this.#drop();
    while (this.#bytes > changeBytes && this.#first < this.#last) this.#drop();
    this.#kept[this.#last % changes] = { change: { ...change, number: this.#last, atMs }, bytes };
  }

  #drop(): void {
    const place = this.#first % this.#limits.changes;
    const dropped = this.#kept[place];
    this.#kept[place] = undefined;
    this.#first += 1;
    if (dropped === undefined) return;
    this.#bytes -= dropped.bytes;
    this.#completeSinceMs = Math.max(this.#completeSinceMs, dropped.change.atMs + 1);
  }

  /** How many of those after this number are kept no more. */
  missedAfter(number: number): number {
    return Math.max(0, this.#first - 1 - number);
  }

  /** The changes after `after` up to `through` that are kept. */
  between(after: number, through: number): readonly NumberedChange[] {
    const changes: NumberedChange[] = [];
    for (let number = Math.max(after + 1, this.#first); number <= through; number += 1) {
      const kept = this.#kept[number % this.#limits.changes];
      if (kept !== undefined) changes.push(kept.change);
    }
    return changes;
  }

  /** The number after which everything of this time and later comes. */
  before(ms: number): number {
    for (let number = this.#first; number <= this.#last; number += 1) {
      const kept = this.#kept[number % this.#limits.changes];
      if (kept !== undefined && kept.change.atMs >= ms) return number - 1;
    }
    return this.#last;
  }
}
