import type { Deprecation } from "../domain/action.ts";
import { asEvregError, EvregError, invalidField, tooLarge } from "../domain/error.ts";
import {
  type BatchItemError,
  type BatchResult,
  type Event,
  EVENT_LIMITS,
  type NewEvent,
} from "../domain/event.ts";
import { type BatchItem, checkItemCount, EventLine, readItem } from "../domain/publish-body.ts";
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

/** Of so many items of a batch all rules that they break are reported, of the others the first. */
const EXPLAINED_ITEMS = 20;
/** Up to so many bytes of JSON the refusals of a batch are reported in full. Then each text and value is cut to `BRIEF_BYTES`. */
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
  const caller = { caller: access.principal, gone: signal, explained: { left: EXPLAINED_ITEMS } };
  return new PublishBatch(context, publisher, caller, items.map(readItem), atomic).run();
}

/** One batch. An item is validated once, and again whenever its action's schema changes meanwhile. */
class PublishBatch {
  readonly #context: ServiceContext;
  readonly #publisher: Publisher;
  readonly #caller: ValidationCaller;
  readonly #items: readonly (NewEvent | EvregError)[];
  readonly #atomic: boolean;
  readonly #data: (Event | null)[];
  readonly #errors = new Map<number, EvregError>();
  /** Ready for the store, by index. */
  #validated: (ValidatedItem | undefined)[];
  /** Neither stored nor refused yet, in order. */
  #open: number[];
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
    this.#data = items.map(() => null);
    this.#validated = items.map(() => undefined);
    this.#open = [...items.keys()];
  }

  /** @throws EvregError of the store, when nothing was stored */
  async run(): Promise<BatchResult> {
    let tries = 0;
    while (await this.#validateOpen()) {
      const sent = this.#open;
      const outcomes = await this.#record(sent);
      if (outcomes === undefined) break;
      if (eventLoop.shouldYield()) await eventLoop.yield();
      const isStale = this.#applyOutcomes(sent, outcomes);
      tries += isStale ? 1 : 0;
      if (tries === MAX_TRIES) this.#refuseOpen((item) => schemaKeepsChanging(item.action));
    }
    const meta = { replayed: this.#replayed, deprecated: [...this.#deprecated.values()] };
    return batchResult(this.#data, this.#errors, meta);
  }

  /** Validates what is open. Returns whether there is anything to store. */
  async #validateOpen(): Promise<boolean> {
    for (const index of this.#open) {
      if (this.#validated[index] !== undefined) continue;
      if (eventLoop.shouldYield()) await eventLoop.yield();
      const item = this.#items[index]!;
      try {
        if (item instanceof EvregError) throw item;
        const validated = this.#publisher.validate(item, this.#caller);
        this.#validated[index] = validated instanceof Promise ? await validated : validated;
      } catch (error) {
        if (!(error instanceof EvregError)) throw error;
        this.#errors.set(index, error);
      }
    }
    if (this.#atomic && this.#errors.size > 0) {
      for (const [index, validated] of this.#validated.entries()) {
        if (validated?.fault !== undefined) this.#errors.set(index, validated.fault);
      }
      return false;
    }
    this.#keepOpen();
    return this.#open.length > 0;
  }

  /** `undefined` when it failed with a part stored: failing as a whole would ask for all of it again. */
  async #record(sent: readonly number[]): Promise<readonly RecordOutcome[] | undefined> {
    const { store, clock } = this.#context;
    const records = sent.map((index) => this.#validated[index]!);
    try {
      return await store.events.record(records, clock.now(), { atomic: this.#atomic });
    } catch (error) {
      if (this.#data.every((event) => event === null)) throw error;
      this.#refuseOpen(() => asEvregError(error));
      return undefined;
    }
  }

  /** Returns whether a schema had changed meanwhile. */
  #applyOutcomes(sent: readonly number[], outcomes: readonly RecordOutcome[]): boolean {
    const { counts, background } = this.#context;
    let isDue = false;
    let isStale = false;
    for (const [place, index] of sent.entries()) {
      const outcome = outcomes[place]!;
      const validated = this.#validated[index]!;
      const event = this.#publisher.resultOf(validated, outcome);
      if (event instanceof EvregError) this.#errors.set(index, event);
      else if (event !== undefined) {
        this.#data[index] = event;
        const { deprecation } = validated.action;
        if (deprecation !== undefined) this.#deprecated.set(deprecation.action, deprecation);
      } else if (outcome.kind === "stale") {
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
    if (!this.#atomic) this.#keepOpen();
    else if (!isStale) this.#open = [];
    else {
      // Nothing of it was stored: all of it is checked by the new schema.
      this.#errors.clear();
      this.#validated = this.#items.map(() => undefined);
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

function checkBatch(items: readonly BatchItem[]): void {
  if (!Array.isArray(items)) throw invalidField("events", "must be a list");
  checkItemCount(items.length);
  let size = 0;
  for (const item of items as readonly unknown[]) {
    const payload = item instanceof EventLine ? item : (item as Partial<NewEvent> | null)?.payload;
    if (payload instanceof RawJson || payload instanceof EventLine) size += payload.bytes.length;
  }
  if (size > EVENT_LIMITS.batchBytes) throw tooLarge("batch", size, EVENT_LIMITS.batchBytes);
}

function batchResult(
  data: readonly (Event | null)[],
  errors: ReadonlyMap<number, EvregError>,
  { replayed, deprecated }: { readonly replayed: number; readonly deprecated: readonly Deprecation[] },
): BatchResult {
  const accepted = data.filter((event) => event !== null).length;
  const listed: BatchItemError[] = [];
  let leftBytes = REFUSALS_BYTES;
  for (const [index, failure] of [...errors].toSorted(([one], [other]) => one - other)) {
    const refusal = { index, ...failure.body() };
    // Once it is used up for one it is for all after it, so that nobody wonders why one in the middle is short.
    if (leftBytes > 0) leftBytes -= jsonBytes(refusal) + 1;
    listed.push(leftBytes > 0 ? refusal : brief(refusal));
  }
  const meta = { accepted, rejected: data.length - accepted, replayed };
  return { data, errors: listed, meta: deprecated.length === 0 ? meta : { ...meta, deprecated } };
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
