import type { Deprecation } from "../domain/action.ts";
import { asEvregError, EvregError, invalidField, tooLarge } from "../domain/error.ts";
import {
  type BatchItemError,
  type BatchResult,
  type Event,
  EVENT_LIMITS,
  type NewEvent,
} from "../domain/event.ts";
import { type BatchItem, checkItemCount } from "../domain/publish-body.ts";
import { RawJson } from "../json/raw-json.ts";
import { eventLoop } from "../runtime/yielding.ts";
import type { ValidationCaller } from "../schema/validate/compile.ts";
import { shortened, shortenedText } from "../schema/validate/errors.ts";
import type { RecordOutcome } from "../store/events.ts";
import type { Access } from "./auth.ts";
import type { ServiceContext } from "./context.ts";
import {
  jsonBytes,
  MAX_TRIES,
  type Publisher,
  schemaKeepsChanging,
  type ValidatedItem,
} from "./publisher.ts";

/** For so many items of a batch all broken rules are reported, for the others the first. */
const EXPLAINED_ITEMS = 20;
/** Up to so many bytes of JSON, refusals are reported in full. Then each text and value is cut to `BRIEF_BYTES`. */
const REFUSALS_BYTES = 1024 * 1024;
const BRIEF_BYTES = 256;

interface BatchRequest {
  readonly items: readonly BatchItem[];
  readonly atomic: boolean;
  /** Ends the long checks; what is stored by then stays. */
  readonly signal?: AbortSignal | undefined;
}

export function publishBatch(
  context: ServiceContext,
  access: Access,
  publisher: Publisher,
  { items, atomic, signal }: BatchRequest,
): Promise<BatchResult> {
  access.requireSome("publish");
  checkBatch(items);
  const caller = { caller: access.caller, gone: signal, explained: { left: EXPLAINED_ITEMS } };
  return new PublishBatch(context, publisher, caller, items, atomic).run();
}

/** One batch. An item is validated once, and again whenever its action's schema changes meanwhile. */
class PublishBatch {
  readonly #context: ServiceContext;
  readonly #publisher: Publisher;
  readonly #caller: ValidationCaller;
  readonly #items: readonly BatchItem[];
  readonly #atomic: boolean;
  /** `undefined` while neither stored nor refused. */
  readonly #results: (Event | EvregError | undefined)[];
  /** Ready for the store, by index. */
  readonly #validated: (ValidatedItem | undefined)[];
  #replayed = 0;
  /** By action, of what was accepted. */
  readonly #deprecated = new Map<string, Deprecation>();

  constructor(
    context: ServiceContext,
    publisher: Publisher,
    caller: ValidationCaller,
    items: readonly (NewEvent | EvregError)[],
    atomic: boolean,
  ) {
    this.#context = context;
    this.#publisher = publisher;
    this.#caller = caller;
    this.#items = items;
    this.#atomic = atomic;
    this.#results = items.map(() => undefined);
    this.#validated = items.map(() => undefined);
  }

  /** @throws EvregError of the store, when nothing was stored */
  async run(): Promise<BatchResult> {
    let tries = 0;
    for (;;) {
      await this.#validateOpen();
      const isRefused = this.#atomic && this.#results.some((result) => result instanceof EvregError);
      if (isRefused) this.#reportFaults();
      const sent = this.#open();
      if (isRefused || sent.length === 0) break;
      const outcomes = await this.#record(sent);
      if (outcomes === undefined) break;
      if (eventLoop.shouldYield()) await eventLoop.yield();
      const isStale = this.#applyOutcomes(sent, outcomes);
      if (this.#atomic && !isStale) break;
      tries += isStale ? 1 : 0;
      if (tries === MAX_TRIES) this.#refuseOpen((item) => schemaKeepsChanging(item.action));
    }
    this.#countRefusals();
    return batchResult(this.#results, this.#replayed, [...this.#deprecated.values()]);
  }

  #open(): number[] {
    return [...this.#results.keys()].filter((index) => this.#results[index] === undefined);
  }

  async #validateOpen(): Promise<void> {
    for (const index of this.#open()) {
      if (this.#validated[index] !== undefined) continue;
      if (eventLoop.shouldYield()) await eventLoop.yield();
      const item = this.#items[index]!;
      try {
        if (item instanceof EvregError) throw item;
        const validated = this.#publisher.validate(item, this.#caller);
        this.#validated[index] = validated instanceof Promise ? await validated : validated;
      } catch (error) {
        if (!(error instanceof EvregError)) throw error;
        this.#results[index] = error;
      }
    }
  }

  /** Of items whose key could have saved them, where the store is not asked. */
  #reportFaults(): void {
    for (const [index, validated] of this.#validated.entries()) this.#results[index] ??= validated?.fault;
  }

  /** `undefined` when it failed with a part stored: failing as a whole would ask for all of it again. */
  async #record(sent: readonly number[]): Promise<readonly RecordOutcome[] | undefined> {
    const { store, clock, feed } = this.#context;
    const records = sent.map((index) => this.#validated[index]!);
    try {
      return await store.events.record(records, clock.now(), { atomic: this.#atomic });
    } catch (error) {
      if (!this.#results.some(isAccepted)) throw error;
      this.#refuseOpen(() => asEvregError(error));
      return undefined;
    } finally {
      feed.recorded();
    }
  }

  /** @returns whether a schema had changed meanwhile */
  #applyOutcomes(sent: readonly number[], outcomes: readonly RecordOutcome[]): boolean {
    const { counts, background } = this.#context;
    let isDue = false;
    let isStale = false;
    for (const [place, index] of sent.entries()) {
      const outcome = outcomes[place]!;
      const validated = this.#validated[index]!;
      const result = this.#publisher.resultOf(validated, outcome);
      this.#results[index] = result;
      const { deprecation } = validated.action;
      if (isAccepted(result) && deprecation !== undefined) {
        this.#deprecated.set(deprecation.action, deprecation);
      } else if (result === undefined && outcome.kind === "stale") {
        isStale = true;
        this.#validated[index] = undefined;
      }
      if (outcome.kind === "recorded") {
        counts.batch += 1;
        counts.queuedDeliveries += outcome.deliveries;
        isDue ||= outcome.deliveries > 0;
      } else if (outcome.kind === "replayed") {
        counts.replayedBatch += 1;
        this.#replayed += 1;
      }
    }
    if (isDue) background.engine?.wake();
    if (this.#atomic && isStale) {
      // Nothing of it was stored: all of it is checked by the new schema.
      this.#results.fill(undefined);
      this.#validated.fill(undefined);
    }
    return isStale;
  }

  #countRefusals(): void {
    for (const [index, result] of this.#results.entries()) {
      if (isAccepted(result)) continue;
      // What was withheld has no failure of its own.
      const failure = result ?? {};
      this.#publisher.noteRefusal(this.#items[index], failure);
    }
  }

  #refuseOpen(why: (item: NewEvent) => EvregError): void {
    for (const index of this.#open()) this.#results[index] = why(this.#items[index] as NewEvent);
  }
}

function isAccepted(result: Event | EvregError | undefined): result is Event {
  return result !== undefined && !(result instanceof EvregError);
}

function checkBatch(items: readonly BatchItem[]): void {
  if (!Array.isArray(items)) throw invalidField("events", "must be a list");
  checkItemCount(items.length);
  let size = 0;
  for (const item of items as readonly unknown[]) {
    const payload = (item as Partial<NewEvent> | null)?.payload;
    if (payload instanceof RawJson) size += payload.bytes.length;
  }
  if (size > EVENT_LIMITS.batchBytes) throw tooLarge("batch", size, EVENT_LIMITS.batchBytes);
}

function batchResult(
  results: readonly (Event | EvregError | undefined)[],
  replayed: number,
  deprecated: readonly Deprecation[],
): BatchResult {
  const data = results.map((result) => (isAccepted(result) ? result : null));
  const accepted = data.filter((event) => event !== null).length;
  const errors: BatchItemError[] = [];
  let leftBytes = REFUSALS_BYTES;
  for (const [index, failure] of results.entries()) {
    if (!(failure instanceof EvregError)) continue;
    const refusal = { index, ...failure.body() };
    // Once one is cut, all after it are, so that nobody wonders why one in the middle is short.
    if (leftBytes > 0) leftBytes -= jsonBytes(refusal) + 1;
    errors.push(leftBytes > 0 ? refusal : brief(refusal));
  }
  const meta = { accepted, rejected: data.length - accepted, replayed };
  return { data, errors, meta: deprecated.length === 0 ? meta : { ...meta, deprecated } };
}

/** A refusal of a few hundred bytes: the first broken rule, its texts cut. */
export function brief({ index, error, details, code }: BatchItemError): BatchItemError {
  const first = Object.entries(details).filter(([name]) => name !== "errors");
  return {
    index,
    error: shortenedText(error, BRIEF_BYTES),
    details: Object.fromEntries(first.map(([name, value]) => [name, shortened(value, BRIEF_BYTES)])),
    code,
  };
}
