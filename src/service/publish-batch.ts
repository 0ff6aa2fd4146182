import { asEvregError, EvregError } from "../domain/error.ts";
import type { BatchResult, Event, NewEvent } from "../domain/event.ts";
import { Pace } from "../runtime/pace.ts";
import type { RecordOutcome } from "../store/store.ts";
import type { ServiceContext } from "./context.ts";
import { batchResult, MAX_TRIES, restless } from "./publish-checks.ts";
import type { Prepared } from "./publisher.ts";

export interface BatchParts {
  readonly context: ServiceContext;
  /** @throws EvregError the item's refusal */
  readonly prepare: (item: NewEvent) => Promise<Prepared>;
  /** The event that came of it, its refusal, or `undefined` when nothing was stored of it yet. */
  readonly settle: (prepared: Prepared, outcome: RecordOutcome) => Event | EvregError | undefined;
}

/**
 * One batch on its way into the store. Each item is checked once and again whenever its action's schema changes under it;
 * what the store defers goes with a later call.
 */
export class PublishBatch {
  readonly #parts: BatchParts;
  readonly #items: readonly (NewEvent | EvregError)[];
  readonly #atomic: boolean;
  readonly #data: (Event | null)[];
  readonly #errors = new Map<number, EvregError>();
  /** Ready for the store, by index. */
  readonly #prepared = new Map<number, Prepared>();
  /** Neither stored nor refused yet, in order. */
  readonly #open: Set<number>;
  /** Once it turned out to be too much for one transaction, the rest goes in portions of about what was not. */
  #portion = Number.POSITIVE_INFINITY;
  #replayed = 0;

  constructor(parts: BatchParts, items: readonly (NewEvent | EvregError)[], atomic: boolean) {
    this.#parts = parts;
    this.#items = items;
    this.#atomic = atomic;
    this.#data = items.map(() => null);
    this.#open = new Set(items.keys());
  }

  /** @throws EvregError of the store, when nothing was stored */
  async run(): Promise<BatchResult> {
    let tries = 0;
    while (await this.#prepareOpen()) {
      const sent = [...this.#open].slice(0, this.#portion);
      const outcomes = await this.#record(sent);
      if (outcomes === undefined) break;
      const isStale = this.#take(sent, outcomes);
      tries += isStale ? 1 : 0;
      if (tries === MAX_TRIES) {
        for (const index of this.#open)
          this.#refuse(index, restless((this.#items[index] as NewEvent).action));
      }
    }
    return batchResult(this.#data, this.#errors, this.#replayed);
  }

  /** Checks what is open and not checked yet. Answers whether there is anything to be stored. */
  async #prepareOpen(): Promise<boolean> {
    const pace = new Pace();
    for (const index of this.#open) {
      if (this.#prepared.has(index)) continue;
      const item = this.#items[index]!;
      try {
        if (item instanceof EvregError) throw item;
        this.#prepared.set(index, await this.#parts.prepare(item));
      } catch (error) {
        if (!(error instanceof EvregError)) throw error;
        this.#refuse(index, error);
      }
      if (pace.isDue) await pace.breathe();
    }
    if (this.#atomic && this.#errors.size > 0) {
      for (const [index, { fault }] of this.#prepared) if (fault !== undefined) this.#refuse(index, fault);
      return false;
    }
    return this.#open.size > 0;
  }

  /** `undefined` when it failed with a part stored: failing as a whole would ask for all of it again. */
  async #record(sent: readonly number[]): Promise<readonly RecordOutcome[] | undefined> {
    const { store, clock } = this.#parts.context;
    const records = sent.map((index) => this.#prepared.get(index)!.record);
    try {
      return await store.recordEvents(records, clock.now(), { atomic: this.#atomic });
    } catch (error) {
      if (this.#data.every((event) => event === null)) throw error;
      for (const index of this.#open) this.#refuse(index, asEvregError(error));
      return undefined;
    }
  }

  /** Answers whether a schema had changed meanwhile. */
  #take(sent: readonly number[], outcomes: readonly RecordOutcome[]): boolean {
    let deliveries = 0;
    let deferred = 0;
    let isStale = false;
    for (const [place, index] of sent.entries()) {
      const outcome = outcomes[place]!;
      const event = this.#parts.settle(this.#prepared.get(index)!, outcome);
      if (event instanceof EvregError) this.#refuse(index, event);
      else if (event !== undefined) this.#keep(index, event);
      else if (outcome.kind === "stale") {
        isStale = true;
        this.#prepared.delete(index);
      }
      deliveries += outcome.kind === "recorded" ? outcome.deliveries : 0;
      deferred += outcome.kind === "deferred" ? 1 : 0;
      this.#replayed += outcome.kind === "replayed" ? 1 : 0;
    }
    if (deliveries > 0) this.#parts.context.wake();
    if (deferred > 0) this.#portion = 2 * (sent.length - deferred);
    if (this.#atomic) this.#open.clear();
    if (this.#atomic && isStale) {
      // Nothing of it was stored: all of it is held to the new schema.
      this.#errors.clear();
      this.#prepared.clear();
      for (const index of this.#items.keys()) this.#open.add(index);
    }
    return isStale;
  }

  #keep(index: number, event: Event): void {
    this.#data[index] = event;
    this.#open.delete(index);
  }

  #refuse(index: number, error: EvregError): void {
    this.#errors.set(index, error);
    this.#open.delete(index);
  }
}
