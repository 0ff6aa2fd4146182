import type { Deprecation } from "../domain/action.ts";
import { asEvregError, EvregError } from "../domain/error.ts";
import type { BatchResult, Event, NewEvent } from "../domain/event.ts";
import { loopPace } from "../runtime/pace.ts";
import type { RecordOutcome } from "../store/events.ts";
import type { ServiceContext } from "./context.ts";
import { batchResult, MAX_TRIES, restless } from "./publish-checks.ts";
import type { Prepared } from "./publisher.ts";

export interface BatchParts {
  readonly context: ServiceContext;
  /** @throws EvregError the item's refusal */
  readonly prepare: (item: NewEvent) => Prepared | Promise<Prepared>;
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
  #prepared: (Prepared | undefined)[];
  /** Neither stored nor refused yet, in order. */
  #open: number[];
  /** Once it turned out to be too much for one transaction, the rest goes in portions of about what was not. */
  #portion = Number.POSITIVE_INFINITY;
  #replayed = 0;
  /** By action, of what was accepted. */
  readonly #deprecated = new Map<string, Deprecation>();

  constructor(parts: BatchParts, items: readonly (NewEvent | EvregError)[], atomic: boolean) {
    this.#parts = parts;
    this.#items = items;
    this.#atomic = atomic;
    this.#data = items.map(() => null);
    this.#prepared = items.map(() => undefined);
    this.#open = [...items.keys()];
  }

  /** @throws EvregError of the store, when nothing was stored */
  async run(): Promise<BatchResult> {
    let tries = 0;
    while (await this.#prepareOpen()) {
      const sent = this.#open.slice(0, this.#portion);
      const outcomes = await this.#record(sent);
      if (outcomes === undefined) break;
      if (!loopPace.mayGoOn()) await loopPace.breathe();
      const isStale = this.#take(sent, outcomes);
      tries += isStale ? 1 : 0;
      if (tries === MAX_TRIES) this.#refuseOpen((item) => restless(item.action));
    }
    const meta = { replayed: this.#replayed, deprecated: [...this.#deprecated.values()] };
    return batchResult(this.#data, this.#errors, meta);
  }

  /** Checks what is open and not checked yet. Answers whether there is anything to be stored. */
  async #prepareOpen(): Promise<boolean> {
    for (const index of this.#open) {
      if (this.#prepared[index] !== undefined) continue;
      if (!loopPace.mayGoOn()) await loopPace.breathe();
      const item = this.#items[index]!;
      try {
        if (item instanceof EvregError) throw item;
        const prepared = this.#parts.prepare(item);
        this.#prepared[index] = prepared instanceof Promise ? await prepared : prepared;
      } catch (error) {
        if (!(error instanceof EvregError)) throw error;
        this.#errors.set(index, error);
      }
    }
    if (this.#atomic && this.#errors.size > 0) {
      for (const [index, prepared] of this.#prepared.entries()) {
        if (prepared?.fault !== undefined) this.#errors.set(index, prepared.fault);
      }
      return false;
    }
    this.#keepOpen();
    return this.#open.length > 0;
  }

  /** `undefined` when it failed with a part stored: failing as a whole would ask for all of it again. */
  async #record(sent: readonly number[]): Promise<readonly RecordOutcome[] | undefined> {
    const { store, clock } = this.#parts.context;
    const records = sent.map((index) => this.#prepared[index]!);
    try {
      return await store.recordEvents(records, clock.now(), { atomic: this.#atomic });
    } catch (error) {
      if (this.#data.every((event) => event === null)) throw error;
      this.#refuseOpen(() => asEvregError(error));
      return undefined;
    }
  }

  /** Answers whether a schema had changed meanwhile. */
  #take(sent: readonly number[], outcomes: readonly RecordOutcome[]): boolean {
    const { counts, wake } = this.#parts.context;
    let deliveries = 0;
    let recorded = 0;
    let replayed = 0;
    let deferred = 0;
    let isStale = false;
    for (const [place, index] of sent.entries()) {
      const outcome = outcomes[place]!;
      const prepared = this.#prepared[index]!;
      const event = this.#parts.settle(prepared, outcome);
      if (event instanceof EvregError) this.#errors.set(index, event);
      else if (event !== undefined) {
        this.#data[index] = event;
        const { deprecation } = prepared.action;
        if (deprecation !== undefined) this.#deprecated.set(deprecation.action, deprecation);
      } else if (outcome.kind === "stale") {
        isStale = true;
        this.#prepared[index] = undefined;
      }
      recorded += outcome.kind === "recorded" ? 1 : 0;
      deliveries += outcome.kind === "recorded" ? outcome.deliveries : 0;
      deferred += outcome.kind === "deferred" ? 1 : 0;
      replayed += outcome.kind === "replayed" ? 1 : 0;
    }
    this.#replayed += replayed;
    counts.batch += recorded;
    counts.replayedBatch += replayed;
    counts.queuedDeliveries += deliveries;
    if (deliveries > 0) wake();
    if (deferred > 0) this.#portion = 2 * (sent.length - deferred);
    if (!this.#atomic) this.#keepOpen();
    else this.#open = [];
    if (this.#atomic && isStale) {
      // Nothing of it was stored: all of it is held to the new schema.
      this.#errors.clear();
      this.#prepared = this.#items.map(() => undefined);
      this.#open = [...this.#items.keys()];
    }
    return isStale;
  }

  #keepOpen(): void {
    this.#open = this.#open.filter((index) => this.#data[index] === null && !this.#errors.has(index));
  }

  #refuseOpen(why: (item: NewEvent) => EvregError): void {
    for (const index of this.#open) this.#errors.set(index, why(this.#items[index] as NewEvent));
    this.#open = [];
  }
}
