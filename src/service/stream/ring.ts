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
  /** What it takes in memory, about. */
  readonly bytes: number;
};

/** What a delivery's result takes, about; its names are shared. */
const RESULT_BYTES = 320;

/** The last changes, in memory. */
export class ChangeRing {
  readonly #limits: { readonly changes: number; readonly changeBytes: number };
  /** The changes, the oldest first. */
  readonly #kept: NumberedChange[] = [];
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

  /** The number of the last one that is kept no more. */
  get #dropped(): number {
    return this.#last - this.#kept.length;
  }

  get completeSinceMs(): number {
    return this.#completeSinceMs;
  }

  /** Says that the ring lacks some of what happened before this time. */
  incompleteBefore(ms: number): void {
    this.#completeSinceMs = Math.max(this.#completeSinceMs, ms);
  }

  add(change: FeedChange, atMs: number): void {
    const bytes = change.topic === "deliveries" ? RESULT_BYTES : 2 * JSON.stringify(change.data).length;
    const { changes, changeBytes } = this.#limits;
    this.#last += 1;
    this.#bytes += bytes;
    this.#kept.push({ ...change, number: this.#last, atMs, bytes });
    while (this.#kept.length > changes || (this.#bytes > changeBytes && this.#kept.length > 1)) {
      const dropped = this.#kept.shift()!;
      this.#bytes -= dropped.bytes;
      this.incompleteBefore(dropped.atMs + 1);
    }
  }

  /** How many of those after this number are kept no more. */
  missedAfter(number: number): number {
    return Math.max(0, this.#dropped - number);
  }

  /** The changes after `after` up to `through` that are kept. */
  between(after: number, through: number): readonly NumberedChange[] {
    const first = Math.max(0, after - this.#dropped);
    return this.#kept.slice(first, Math.max(first, through - this.#dropped));
  }

  /** The number after which everything of this time and later comes. */
  before(ms: number): number {
    const first = this.#kept.find(({ atMs }) => atMs >= ms);
    return first === undefined ? this.#last : first.number - 1;
  }
}
