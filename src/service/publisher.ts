import type { PayloadError } from "../domain/action.ts";
import { asEvregError, EvregError, invalidField, tooLarge } from "../domain/error.ts";
import type { Event, NewEvent } from "../domain/event.ts";
import { NAME_LENGTH } from "../domain/names.ts";
import { checkIdempotencyKey } from "../domain/publish-body.ts";
import type { Published } from "../evreg.ts";
import { RawJson } from "../json/raw-json.ts";
import { scanJson } from "../json/scanner.ts";
import { toIso } from "../runtime/clock.ts";
import { MAX_FAILURE_BYTES } from "../schema/limits.ts";
import type { ValidationCaller } from "../schema/validate/compile.ts";
import type { Failure } from "../schema/validate/errors.ts";
import type { EventRecord, RecordOutcome } from "../store/events.ts";
import type { Claim } from "../store/queue.ts";
import type { LoadedAction } from "./action-cache.ts";
import type { Access } from "./auth.ts";
import type { ServiceContext } from "./context.ts";
import { notFound, ownAction } from "./requests.ts";

/** How often a publish is tried again because its schema changed meanwhile. */
export const MAX_TRIES = 20;

/** An item ready for the store, with the action that checked it: one object, as a server has thousands at once. */
export interface ValidatedItem extends EventRecord {
  readonly item: NewEvent;
  readonly action: LoadedAction;
  /**
   * Why it is refused: its payload does not conform, or the action is retired. Only with a key, by which an event may have
   * been accepted before that.
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
    try {
      return await this.#publish(input);
    } catch (error) {
      if (error instanceof EvregError) this.noteRefusal(input, error);
      throw error;
    }
  }

  /** Counts it for its action, unless that is not known or the caller may not publish to it. */
  noteRefusal(item: unknown, failure: object): void {
    if (failure instanceof EvregError && failure.code === "forbidden") return;
    const { actions, stats } = this.#context;
    const { action } = Object(item) as { readonly action?: unknown };
    const known = typeof action === "string" ? actions.get(action) : undefined;
    stats.refused(failure, known === undefined ? "" : (action as string));
  }

  async #publish(input: NewEvent): Promise<Published> {
    const { counts, payloads } = this.#context;
    this.#access.requireSome("publish", nameIn(input));
    checkItem(input, this.#context.limits.payloadBytes);
    checkPayload(input.payload);
    const caller = { caller: this.#access.caller, explained: { left: 1 } };
    const pause = payloads.pause();
    if (pause !== undefined) await pause;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const found = this.#actionOf(input);
      const action = found instanceof Promise ? await found : found;
      const checking = this.#check(input, action, caller);
      const ready = checking instanceof Promise ? await checking : checking;
      const outcome = await this.#record(ready);
      const event = this.resultOf(ready, outcome);
      if (event instanceof EvregError) throw event;
      if (event === undefined) continue;
      const replayed = outcome.kind === "replayed";
      if (replayed) counts.replayedSingle += 1;
      else counts.single += 1;
      if (outcome.kind === "recorded" && outcome.deliveries > 0) {
        counts.queuedDeliveries += outcome.deliveries;
        if (outcome.deliveries > (outcome.claims?.length ?? 0)) this.#context.background.engine?.wake();
      }
      const { deprecation } = ready.action;
      return deprecation === undefined ? { data: event, replayed } : { data: event, replayed, deprecation };
    }
    throw schemaKeepsChanging(input.action);
  }

  /** The deliveries that the engine has capacity for go to it at once; what else is due, it claims. */
  async #record(ready: ValidatedItem): Promise<RecordOutcome> {
    const { store, clock, background, feed } = this.#context;
    const { engine } = background;
    const claim = engine?.claimOf(ready.item.action);
    let claims: readonly Claim[] = [];
    try {
      const [outcome] = await store.events.record([ready], clock.now(), { claim });
      if (outcome?.kind === "recorded" && outcome.claims !== undefined) ({ claims } = outcome);
      feed.recorded();
      return outcome!;
    } finally {
      if (claim !== undefined) engine?.recorded(claim, claims);
    }
  }

  /** At once when the action is cached, as a promise takes longer than most checks. @throws the item's refusal */
  validate(item: NewEvent, caller: ValidationCaller): ValidatedItem | Promise<ValidatedItem> {
    checkNewEvent(item, this.#context.limits.payloadBytes);
    const action = this.#actionOf(item);
    if (action instanceof Promise) return action.then((loaded) => this.#check(item, loaded, caller));
    return this.#check(item, action, caller);
  }

  #actionOf({ action }: NewEvent): LoadedAction | Promise<LoadedAction> {
    return this.#context.actions.get(action) ?? this.#load(action);
  }

  async #load(name: string): Promise<LoadedAction> {
    const action = await this.#context.actions.load(name);
    if (action === undefined) throw notFound("action", name, "action");
    return action;
  }

  #check(
    item: NewEvent,
    action: LoadedAction,
    caller: ValidationCaller,
  ): ValidatedItem | Promise<ValidatedItem> {
    this.#access.require("publish", action.application, item.action);
    if (action.isBuiltIn) throw ownAction(item.action, "published");
    if (action.isRetired) return validated(item, action, retired(item.action, action.successor));
    const failure = this.#context.payloads.failureOf(item.action, action, item.payload, caller);
    if (failure instanceof Promise) return failure.then((found) => itemFor(item, action, found));
    return itemFor(item, action, failure);
  }

  /** The event, its refusal, or `undefined` when nothing was stored and it may be tried again. */
  resultOf({ item, action, fault }: ValidatedItem, outcome: RecordOutcome): Event | EvregError | undefined {
    switch (outcome.kind) {
      case "recorded":
        return eventOf(item, outcome, action.revision);
      case "replayed":
        return eventOf(item, outcome, outcome.revision);
      case "key_conflict":
        return fault ?? keyConflict(item);
      case "stale":
        if (fault !== undefined) return fault;
        this.#context.actions.evictStale(item.action, action);
        return undefined;
      case "failed":
        return outcome.error;
      case "withheld":
        return undefined;
      default:
        return outcome satisfies never;
    }
  }
}

function itemFor(item: NewEvent, action: LoadedAction, failure: Failure | undefined): ValidatedItem {
  return validated(item, action, failure === undefined ? undefined : nonConforming(item, failure));
}

/** @throws the fault, where no key could have been accepted before */
function validated(item: NewEvent, action: LoadedAction, fault: EvregError | undefined): ValidatedItem {
  const { actionId, revision } = action;
  const payload = item.payload.bytes;
  const { idempotency_key: idempotencyKey } = item;
  if (idempotencyKey === undefined) {
    if (fault !== undefined) throw fault;
    return { item, action, actionId, revision, payload };
  }
  if (fault === undefined) return { item, action, actionId, revision, payload, idempotencyKey };
  return { item, action, actionId, revision, payload, idempotencyKey, lookupOnly: true, fault };
}

/** What holds for an item whatever its action is. @throws `invalid`, `too_large`, `malformed` */
export function checkNewEvent(item: NewEvent, payloadBytes: number): void {
  checkItem(item, payloadBytes);
  checkPayload(item.payload);
}

/** The name of an action that an unchecked event has, unless no action can have it. */
function nameIn(item: unknown): string | undefined {
  const { action } = Object(item) as { readonly action?: unknown };
  return typeof action === "string" && action.length <= NAME_LENGTH ? action : undefined;
}

function checkItem(item: NewEvent, payloadBytes: number): void {
  if (typeof item !== "object" || item === null) {
    throw invalidField("body", "must be an object with action and payload");
  }
  const { action, payload, idempotency_key: key } = item;
  if (typeof action !== "string") throw invalidField("action", "must be a string", action);
  if (!(payload instanceof RawJson)) throw invalidField("payload", "must be an object");
  if (key !== undefined) checkIdempotencyKey("idempotency_key", key);
  if (payload.bytes.length > payloadBytes) throw tooLarge("payload", payload.bytes.length, payloadBytes);
}

/** @throws `malformed` or `invalid` unless it is an object; also for payloads that were not scanned */
function checkPayload(payload: RawJson): void {
  const isObject = payload.scanned ? payload.bytes[0] === OPENING_BRACE : isScannedObject(payload);
  if (!isObject) throw invalidField("payload", "must be an object");
}

const OPENING_BRACE = 0x7b;

function isScannedObject({ bytes }: RawJson): boolean {
  try {
    return scanJson(bytes).kind === "object";
  } catch (error) {
    throw asEvregError(error);
  }
}

export function nonConforming({ action }: NewEvent, { others = [], ...first }: Failure): EvregError {
  const { field, message } = first;
  return new EvregError(
    "invalid",
    `The payload does not conform to the schema of ${action}: ${field === "" ? "it" : field} ${message}`,
    { ...first, errors: shownFailures({ ...first, others }) },
  );
}

/** The first, and those after it that fit into one answer. */
export function shownFailures({ others = [], ...first }: Failure): readonly PayloadError[] {
  const failures = [first, ...others];
  let bytes = 1;
  const over = failures.findIndex((failure) => (bytes += jsonBytes(failure) + 1) > MAX_FAILURE_BYTES);
  return over === -1 ? failures : failures.slice(0, Math.max(over, 1));
}

export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** @throws what publishing to an action is refused with that takes no events, whatever is in them */
export function mustTakeEvents(name: string, { isBuiltIn, isRetired, successor }: LoadedAction): void {
  if (isBuiltIn) throw ownAction(name, "published");
  if (isRetired) throw retired(name, successor);
}

function retired(action: string, successor: string | null): EvregError {
  const instead = successor === null ? "" : `; publish to ${successor} instead`;
  const message = `is retired and takes no events any more${instead}`;
  const details = { field: "action", message, value: action, successor };
  return new EvregError("gone", `${action} ${message}.`, details);
}

function eventOf(
  { action, payload }: NewEvent,
  { rowid, timestampedMs }: { readonly rowid: number; readonly timestampedMs: number },
  revision: number,
): Event {
  return { rowid, action, payload, revision, timestamped: toIso(timestampedMs) };
}

function keyConflict({ idempotency_key: key }: NewEvent): EvregError {
  const message =
    "was used before in this application, with another action or payload; a new event needs a new key";
  const details = { field: "idempotency_key", message, value: key };
  return new EvregError("conflict", `idempotency_key: ${message}.`, details);
}

export function schemaKeepsChanging(action: string): EvregError {
  return new EvregError(
    "unavailable",
    `The schema of ${action} kept changing while the event was checked against it. Nothing was stored; try again.`,
  );
}
