import { asEvregError, EvregError } from "../domain/error.ts";
import type { BatchResult, Event, NewEvent } from "../domain/event.ts";
import type { Published } from "../evreg.ts";
import { Pace } from "../runtime/pace.ts";
import type { EventRecord, RecordOutcome } from "../store/store.ts";
import type { Access } from "./access.ts";
import type { LoadedAction } from "./action-cache.ts";
import { notFound } from "./answers.ts";
import type { ServiceContext } from "./context.ts";
import {
  batchResult,
  checkBatch,
  checkItem,
  eventOf,
  keyConflict,
  nonConforming,
  payloadValue,
  restless,
} from "./publish-checks.ts";

/** How often a publish follows a schema that changes under it, before it gives up. */
const MAX_TRIES = 20;

/** Revisions count from 1, so the store records nothing under this one; it only tells whether the key was used. */
const NO_REVISION = 0;

/** An item ready for the store, with the action it was held to. */
interface Prepared {
  readonly item: NewEvent;
  readonly action: LoadedAction;
  readonly record: EventRecord;
  /**
   * Why the payload does not conform. Only where there is a key: the event may have been accepted before the schema
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
    const { store, clock } = this.#context;
    this.#access.requireSome("publish");
    checkItem(input, this.#context.limits.payloadBytes);
    const value = payloadValue(input.payload);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const prepared = this.#held(input, value, await this.#actionOf(input));
      const outcome = (await store.recordEvents([prepared.record], clock.now()))[0]!;
      const event = this.#settled(prepared, outcome);
      if (event instanceof EvregError) throw event;
      if (event === undefined) continue;
      if (outcome.kind === "recorded" && outcome.deliveries > 0) this.#context.wake();
      return { data: event, replayed: outcome.kind === "replayed" };
    }
    throw restless(input.action);
  }

  async publishBatch(items: readonly (NewEvent | EvregError)[], atomic: boolean): Promise<BatchResult> {
    this.#access.requireSome("publish");
    checkBatch(items);
    const pace = new Pace();
    const data: (Event | null)[] = items.map(() => null);
    const errors = new Map<number, EvregError>();
    const everyIndex = [...items.keys()];
    let open: readonly number[] = everyIndex;
    let deliveries = 0;
    let replayed = 0;
    for (let tries = 0; open.length > 0; tries++) {
      if (tries === MAX_TRIES) {
        for (const index of open) errors.set(index, restless((items[index] as NewEvent).action));
        break;
      }
      const prepared = new Map<number, Prepared>();
      for (const index of open) {
        try {
          prepared.set(index, await this.#prepare(items[index]!));
        } catch (error) {
          if (!(error instanceof EvregError)) throw error;
          errors.set(index, error);
        }
        await pace.breathe();
      }
      if (atomic && errors.size > 0) {
        for (const [index, { fault }] of prepared) if (fault !== undefined) errors.set(index, fault);
        break;
      }
      if (prepared.size === 0) break;
      const records = [...prepared.values()].map(({ record }) => record);
      let outcomes: readonly RecordOutcome[];
      try {
        outcomes = await this.#context.store.recordEvents(records, this.#context.clock.now(), { atomic });
      } catch (error) {
        // Once a part is stored the answer has to say which: failing as a whole would ask for all of it again.
        if (atomic || data.every((event) => event === null)) throw error;
        for (const index of prepared.keys()) errors.set(index, asEvregError(error));
        break;
      }
      const stale: number[] = [];
      let place = 0;
      for (const [index, one] of prepared) {
        const outcome = outcomes[place++]!;
        const event = this.#settled(one, outcome);
        if (event instanceof EvregError) errors.set(index, event);
        else if (outcome.kind === "stale") stale.push(index);
        else data[index] = event ?? null;
        if (outcome.kind === "recorded") deliveries += outcome.deliveries;
        if (outcome.kind === "replayed") replayed += 1;
      }
      // Of an atomic batch nothing was stored when one item was stale: all of it is held to the new schema.
      if (atomic && stale.length > 0) errors.clear();
      open = atomic && stale.length > 0 ? everyIndex : stale;
    }
    if (deliveries > 0) this.#context.wake();
    return batchResult(data, errors, replayed);
  }

  async #prepare(item: NewEvent | EvregError): Promise<Prepared> {
    if (item instanceof EvregError) throw item;
    checkItem(item, this.#context.limits.payloadBytes);
    const value = payloadValue(item.payload);
    return this.#held(item, value, await this.#actionOf(item));
  }

  #actionOf({ action }: NewEvent): LoadedAction | Promise<LoadedAction> {
    return this.#context.actions.get(action) ?? this.#load(action);
  }

  async #load(name: string): Promise<LoadedAction> {
    const action = await this.#context.actions.load(name);
    if (action === undefined) throw notFound("action", name, "action");
    return action;
  }

  #held(item: NewEvent, value: unknown, action: LoadedAction): Prepared {
    this.#access.require("publish", action.application);
    const failure = action.validator.validate(value);
    const { actionId, revision } = action;
    const { payload, idempotency_key: idempotencyKey } = item;
    if (idempotencyKey === undefined) {
      if (failure !== undefined) throw nonConforming(item, failure);
      return { item, action, record: { actionId, revision, payload: payload.bytes } };
    }
    const record = { actionId, revision, payload: payload.bytes, idempotencyKey };
    if (failure === undefined) return { item, action, record };
    return {
      item,
      action,
      record: { ...record, revision: NO_REVISION },
      fault: nonConforming(item, failure),
    };
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
      default:
        return outcome satisfies never;
    }
  }
}
