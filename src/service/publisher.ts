import { EvregError } from "../domain/error.ts";
import type { BatchResult, Event, NewEvent } from "../domain/event.ts";
import { readItem, type BatchItem } from "../domain/event-line.ts";
import type { Published } from "../evreg.ts";
import type { Failure } from "../schema/failure.ts";
import type { LongCheckAsker } from "../schema/long-check.ts";
import type { EventRecord, RecordOutcome } from "../store/events.ts";
import type { Access } from "./access.ts";
import type { LoadedAction } from "./action-cache.ts";
import { notFound, ownAction } from "./answers.ts";
import type { ServiceContext } from "./context.ts";
import { PublishBatch } from "./publish-batch.ts";
import {
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

/** Revisions count from 1, so the store records nothing under this one; it only tells whether the key was used. */
const NO_REVISION = 0;

/** Of so many items of a batch all that they break is told, of the others the first. */
const EXPLAINED_ITEMS = 20;

/** An item ready for the store, with the action it was held to. One object, as a server has thousands of them at once. */
export interface Prepared extends EventRecord {
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
      const outcome = (await store.recordEvents([prepared], clock.now()))[0]!;
      const event = this.#settled(prepared, outcome);
      if (event instanceof EvregError) throw event;
      if (event === undefined) continue;
      const replayed = outcome.kind === "replayed";
      if (replayed) counts.replayedSingle += 1;
      else counts.single += 1;
      if (outcome.kind === "recorded" && outcome.deliveries > 0) {
        counts.queuedDeliveries += outcome.deliveries;
        this.#context.wake();
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
      case "deferred":
        return undefined;
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
