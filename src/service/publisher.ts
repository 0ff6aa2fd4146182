import type { Deprecation } from "../domain/action.ts";
import { asEvregError, EvregError } from "../domain/error.ts";
import type { BatchResult, Event, NewEvent } from "../domain/event.ts";
import { type BatchItem, readItem } from "../domain/publish-body.ts";
import type { Published } from "../evreg.ts";
import { eventLoop } from "../runtime/yielding.ts";
import type { LongCheckAsker } from "../schema/validate/compile.ts";
import type { Failure } from "../schema/validate/errors.ts";
import type { EventRecord, RecordOutcome } from "../store/events.ts";
import type { LoadedAction } from "./action-cache.ts";
import type { Access } from "./auth.ts";
import type { ServiceContext } from "./context.ts";
import {
  batchResult,
  checkBatch,
  checkItem,
  checkPayload,
  eventOf,
  keyConflict,
  MAX_TRIES,
  nonConforming,
  restless,
  retired,
} from "./publish-checks.ts";
import { notFound, ownAction } from "./requests.ts";

/** Revisions count from 1, so the store records nothing under this one; it only tells whether the key was used. */
const NO_REVISION = 0;

/** Of so many items of a batch all that they break is told, of the others the first. */
const EXPLAINED_ITEMS = 20;

/** An item ready for the store, with the action it was held to. One object, as a server has thousands of them at once. */
interface Prepared extends EventRecord {
  readonly item: NewEvent;
  readonly action: LoadedAction;
  /**
   * Why it is refused: its payload does not conform, or the action is retired. Only where there is a key: the event may have been accepted before the schema
   * became what it is now, and is then answered all the same.
   */
  readonly fault?: EvregError;
}

/** Publishing for one principal. `publish` is the path that everything else must not slow down. */
export class Publisher {
  readonly #context: ServiceContext;
  readonly #access: Access;

  constructor(context: ServiceContext, access: Access) {
    this.#context = context;
    this.#access = access;
  }

  async publish(input: NewEvent): Promise<Published> {
    const { store, clock, counts, payloadChecks } = this.#context;
    this.#access.requireSome("publish");
    checkItem(input, this.#context.limits.payloadBytes);
    checkPayload(input.payload);
    const asker = { caller: this.#access.principal, explained: { left: 1 } };
    const pause = payloadChecks.pause();
    if (pause !== undefined) await pause;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const found = this.#actionOf(input);
      const action = found instanceof Promise ? await found : found;
      const held = this.#held(input, action, asker);
      const prepared = held instanceof Promise ? await held : held;
      const outcome = (await store.events.record([prepared], clock.now()))[0]!;
      const event = this.#settled(prepared, outcome);
      if (event instanceof EvregError) throw event;
      if (event === undefined) continue;
      const replayed = outcome.kind === "replayed";
      if (replayed) counts.replayedSingle += 1;
      else counts.single += 1;
      if (outcome.kind === "recorded" && outcome.deliveries > 0) {
        counts.queuedDeliveries += outcome.deliveries;
        this.#context.signals.deliveriesDue();
      }
      const { deprecation } = prepared.action;
      return deprecation === undefined ? { data: event, replayed } : { data: event, replayed, deprecation };
    }
    throw restless(input.action);
  }

  /** @param gone ends the checks that take long; what was stored by then stays */
  publishBatch(items: readonly BatchItem[], atomic: boolean, gone?: AbortSignal): Promise<BatchResult> {
    this.#access.requireSome("publish");
    checkBatch(items);
    const asker = { caller: this.#access.principal, gone, explained: { left: EXPLAINED_ITEMS } };
    const parts = {
      context: this.#context,
      prepare: (item: NewEvent) => this.#prepare(item, asker),
      settle: (prepared: Prepared, outcome: RecordOutcome) => this.#settled(prepared, outcome),
    };
    return new PublishBatch(parts, items.map(readItem), atomic).run();
  }

  /** At once when the action is at hand, as a promise takes longer than most checks. */
  #prepare(item: NewEvent, asker: LongCheckAsker): Prepared | Promise<Prepared> {
    checkItem(item, this.#context.limits.payloadBytes);
    checkPayload(item.payload);
    const action = this.#actionOf(item);
    if (action instanceof Promise) return action.then((loaded) => this.#held(item, loaded, asker));
    return this.#held(item, action, asker);
  }

  #actionOf({ action }: NewEvent): LoadedAction | Promise<LoadedAction> {
    return this.#context.actions.get(action) ?? this.#load(action);
  }

  async #load(name: string): Promise<LoadedAction> {
    const action = await this.#context.actions.load(name);
    if (action === undefined) throw notFound("action", name, "action");
    return action;
  }

  /** At once where the check is short, as a promise takes longer than most of them. */
  #held(item: NewEvent, action: LoadedAction, asker: LongCheckAsker): Prepared | Promise<Prepared> {
    this.#access.require("publish", action.application, item.action);
    if (action.isBuiltIn) throw ownAction(item.action, "published");
    if (action.isRetired) return readied(item, action, retired(item, action.successor));
    const failure = this.#context.payloadChecks.failureOf(item.action, action, item.payload, asker);
    if (failure instanceof Promise) return failure.then((found) => judged(item, action, found));
    return judged(item, action, failure);
  }

  /** The event that came of it, its refusal, or `undefined` when nothing was stored and it may be tried again. */
  #settled({ item, action, fault }: Prepared, outcome: RecordOutcome): Event | EvregError | undefined {
    switch (outcome.kind) {
      case "recorded":
        return eventOf(item, outcome, action.revision);
      case "replayed":
        return eventOf(item, outcome, outcome.revision);
      case "key_conflict":
        return fault ?? keyConflict(item);
      case "stale":
        if (fault !== undefined) return fault;
        this.#context.actions.outdated(item.action, action);
        return undefined;
      case "withheld":
        return undefined;
      case "failed":
        return outcome.error;
      default:
        return outcome satisfies never;
    }
  }
}

function judged(item: NewEvent, action: LoadedAction, failure: Failure | undefined): Prepared {
  return readied(item, action, failure === undefined ? undefined : nonConforming(item, failure));
}

/** @throws EvregError the fault, where nothing could have been accepted under a key before */
function readied(item: NewEvent, action: LoadedAction, fault: EvregError | undefined): Prepared {
  const { actionId, revision } = action;
  const payload = item.payload.bytes;
  const { idempotency_key: idempotencyKey } = item;
  if (idempotencyKey === undefined) {
    if (fault !== undefined) throw fault;
    return { item, action, actionId, revision, payload };
  }
  if (fault === undefined) return { item, action, actionId, revision, payload, idempotencyKey };
  return { item, action, actionId, revision: NO_REVISION, payload, idempotencyKey, fault };
}

interface BatchParts {
  readonly context: ServiceContext;
  /** @throws EvregError the item's refusal */
  readonly prepare: (item: NewEvent) => Prepared | Promise<Prepared>;
  /** The event that came of it, its refusal, or `undefined` when nothing was stored of it yet. */
  readonly settle: (prepared: Prepared, outcome: RecordOutcome) => Event | EvregError | undefined;
}

/** One batch on its way into the store. Each item is checked once and again whenever its action's schema changes under it. */
class PublishBatch {
  readonly #parts: BatchParts;
  readonly #items: readonly (NewEvent | EvregError)[];
  readonly #atomic: boolean;
  readonly #data: (Event | null)[];
  readonly #errors = new Map<number, EvregError>();
  /** Ready for the store, by index. */
  #prepared: (Prepared | undefined)[];
  /** Neither stored nor refused yet, in order. */
  #open: number[];
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
      const sent = this.#open;
      const outcomes = await this.#record(sent);
      if (outcomes === undefined) break;
      if (eventLoop.shouldYield()) await eventLoop.yield();
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
      if (eventLoop.shouldYield()) await eventLoop.yield();
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
      return await store.events.record(records, clock.now(), { atomic: this.#atomic });
    } catch (error) {
      if (this.#data.every((event) => event === null)) throw error;
      this.#refuseOpen(() => asEvregError(error));
      return undefined;
    }
  }

  /** Answers whether a schema had changed meanwhile. */
  #take(sent: readonly number[], outcomes: readonly RecordOutcome[]): boolean {
    const { counts, signals } = this.#parts.context;
    let deliveries = 0;
    let recorded = 0;
    let replayed = 0;
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
      replayed += outcome.kind === "replayed" ? 1 : 0;
    }
    this.#replayed += replayed;
    counts.batch += recorded;
    counts.replayedBatch += replayed;
    counts.queuedDeliveries += deliveries;
    if (deliveries > 0) signals.deliveriesDue();
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
