import { EvregError } from "../domain/error.ts";
import type { DeliveryCounts } from "../metrics/counters.ts";
import { Backoff, type Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { AttemptResult, DeliveryQueue, FinishAnswer } from "../store/queue.ts";
import type { Tempo } from "./store-calls.ts";

const MAX_BATCH = 1_000;
/** Far less than what a lease has beyond the deadline of its attempt. */
const BEHIND_MS = 1_000;

export interface FinisherParts {
  readonly store: Pick<DeliveryQueue, "finish">;
  readonly clock: Clock;
  readonly tempo: Tempo;
  readonly logger: Logger;
  readonly counts: DeliveryCounts;
  readonly disableAfterMs: number | undefined;
  /** Called after each batch that was stored, with those of it that count for nothing: their deliveries are leased anew. */
  readonly onStored: (results: readonly AttemptResult[], lost: ReadonlySet<AttemptResult>) => void;
  /** Called for each subscription that was deactivated by that, before `onStored`. */
  readonly onDeactivated: (subscriptionId: number) => void;
}

/**
 * Stores finished attempts: together what gathers while the call before is under way, and again after a failure, so that
 * what a handler has taken is not sent to it once more because the store was away for a while.
 */
export class Finisher {
  readonly #parts: FinisherParts;
  readonly #backoff: Backoff;
  readonly #waiting: AttemptResult[] = [];
  #running: Promise<void> | undefined;
  /** When the batch under way, or what is left of one, was first tried to be stored. */
  #storingSinceMs = Infinity;
  readonly #closing = new AbortController();

  constructor(parts: FinisherParts) {
    this.#parts = parts;
    this.#backoff = new Backoff(parts.clock);
  }

  /** Results not stored yet. */
  get backlog(): number {
    return this.#waiting.length;
  }

  /** Whether the store takes so long, or fails, that leases may end whose results are here. */
  get isBehind(): boolean {
    return this.#parts.clock.now() - this.#storingSinceMs > BEHIND_MS;
  }

  add(result: AttemptResult): void {
    this.#waiting.push(result);
    this.#running ??= this.#storeAll();
  }

  /** Resolves when all there is has been stored or, once closing, given up. */
  async idle(): Promise<void> {
    await this.#running;
  }

  /** Tries once more to store what is left, without waiting for a store that fails. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #storeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      await this.#parts.tempo.turn();
      const batch = this.#waiting.slice(0, MAX_BATCH);
      this.#storingSinceMs = Math.min(this.#storingSinceMs, this.#parts.clock.now());
      const lost = new Set<AttemptResult>();
      let deferred: readonly AttemptResult[];
      try {
        deferred = await this.#store(batch, lost);
        // Those that were left go first the next time.
        this.#waiting.splice(0, batch.length, ...deferred);
        this.#parts.tempo.note(batch.length - deferred.length);
        this.#backoff.reset();
        // Of what is left over and over again, leases may end as well.
        if (deferred.length === 0) this.#storingSinceMs = Infinity;
      } catch (error) {
        if (this.#closing.signal.aborted) {
          this.#giveUp(error);
          break;
        }
        if (!this.#backoff.isFailing) {
          this.#parts.logger.warn(
            { error: messageOf(error) },
            "Finished attempts cannot be recorded; trying on.",
          );
        }
        await this.#backoff.wait(this.#closing.signal);
        continue;
      }
      this.#parts.onStored(without(batch, deferred), lost);
    }
    // In the same turn as the last look at `#waiting`, so that nothing is added between and left behind.
    this.#running = undefined;
  }

  /** Answers those that the store left to another call. */
  async #store(batch: readonly AttemptResult[], lost: Set<AttemptResult>): Promise<readonly AttemptResult[]> {
    const { store, clock, logger, counts, disableAfterMs, onDeactivated } = this.#parts;
    let answer: FinishAnswer;
    try {
      answer = await store.finish(batch, clock.now(), disableAfterMs === undefined ? {} : { disableAfterMs });
    } catch (error) {
      if (isPassing(error)) throw error;
      // Something about one of them; the others must not suffer for it. Its lease will end, and it is sent again.
      const [first] = batch;
      if (first !== undefined && batch.length === 1) {
        lost.add(first);
        logger.error(
          { delivery: first.deliveryId, error: messageOf(error) },
          "An attempt cannot be recorded.",
        );
        return [];
      }
      const left: AttemptResult[] = [];
      for (const result of batch) left.push(...(await this.#store([result], lost)));
      return left;
    }
    for (const { subscriptionId, reason } of answer.deactivated) {
      logger.warn({ subscription: subscriptionId, reason }, "Subscription deactivated.");
      onDeactivated(subscriptionId);
    }
    counts.ended(answer.ended);
    const deferred = new Set(answer.deferred.map((index) => batch[index]!));
    answer.applied.forEach((isApplied, index) => {
      const result = batch[index]!;
      if (isApplied || deferred.has(result)) return;
      const { deliveryId, next } = result;
      lost.add(result);
      if (next.kind === "unsent") return;
      logger.warn({ delivery: deliveryId }, "An attempt ended after its lease; its delivery had moved on.");
    });
    return [...deferred];
  }

  #giveUp(error: unknown): void {
    const { logger } = this.#parts;
    logger.error(
      { attempts: this.#waiting.length, error: messageOf(error) },
      "Finished attempts were not recorded before the stop; their deliveries are sent again when their leases end.",
    );
    this.#waiting.length = 0;
  }
}

function without(
  batch: readonly AttemptResult[],
  deferred: readonly AttemptResult[],
): readonly AttemptResult[] {
  if (deferred.length === 0) return batch;
  const left = new Set(deferred);
  return batch.filter((result) => !left.has(result));
}

function isPassing(error: unknown): boolean {
  return error instanceof EvregError && error.code === "unavailable";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
