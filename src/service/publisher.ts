import { asEvregError, EvregError, invalidField, tooLarge } from "../domain/error.ts";
import {
  BATCH_QUERY,
  type BatchOptions,
  type BatchResult,
  type Event,
  EVENT_LIMITS,
  type NewEvent,
} from "../domain/event.ts";
import { NAME_LENGTH } from "../domain/names.ts";
import { type BatchItem, checkIdempotencyKey, checkItemCount } from "../domain/publish-body.ts";
import type { EventsPort, Published } from "../evreg.ts";
import { RawJson } from "../json/raw-json.ts";
import { scanJson } from "../json/scanner.ts";
import { toIso } from "../runtime/clock.ts";
import { eventLoop } from "../runtime/yielding.ts";
import { MAX_FAILURES } from "../schema/limits.ts";
import type { ValidationCaller } from "../schema/validate/compile.ts";
import type { Failure } from "../schema/validate/errors.ts";
import type { EventRecord, RecordOutcome } from "../store/events.ts";
import type { Claim } from "../store/queue.ts";
import type { Access } from "./auth.ts";
import type { LoadedAction } from "./compiled-actions.ts";
import type { ServiceContext } from "./context.ts";
import {
  checkQuery,
  keyConflict,
  missingAction,
  nonConforming,
  notFound,
  refusalsIn,
  schemaKeepsChanging,
  takesNoEvents,
} from "./requests.ts";

/** How often a publish is tried again because its schema changed meanwhile. */
const MAX_TRIES = 20;
/** Names of a batch that get a suggestion: each is compared with all there are, and every item may have another one. */
const MAX_SUGGESTIONS = 10;

/** An item ready for the store, with the action that checked it: one object, as a server has thousands at once. */
interface ValidatedItem extends EventRecord {
  readonly item: NewEvent;
  readonly action: LoadedAction;
  /**
   * Why it is refused: its payload does not conform, or the action is retired. Only with a key, by which an event may have
   * been accepted before that.
   */
  readonly fault?: EvregError;
}

/** An item on its way. It is validated once, and again whenever its action's schema changes meanwhile. */
interface Publication {
  readonly item: BatchItem;
  /** `undefined` while it is not checked. */
  ready: ValidatedItem | undefined;
  /** `undefined` while it is neither stored nor refused. */
  result: Event | EvregError | undefined;
  isReplayed: boolean;
}

interface PublishRequest {
  readonly caller: ValidationCaller;
  readonly isBatch: boolean;
  /** All or nothing. */
  readonly atomic: boolean;
  /**
   * Why the names that items of a batch have and no action are refused: each is looked for once, as a file may have a wrong one
   * in every line.
   */
  readonly missing?: Map<string, EvregError>;
}

/** Publishing for one principal: one event, or several, in the same way. Its two fields are those of the port. */
export class Publisher implements Pick<EventsPort, "publish" | "publishBatch"> {
  readonly #context: ServiceContext;
  readonly #access: Access;

  constructor(context: ServiceContext, access: Access) {
    this.#context = context;
    this.#access = access;
  }

  /** This is the path that everything else must not slow down. */
  readonly publish = async (input: NewEvent): Promise<Published> => {
    this.#access.requireSome("publish", nameIn(input));
    const { caller } = this.#access;
    const one = begun(input);
    await this.#publishAll([one], { caller: { caller }, isBatch: false, atomic: false });
    const { ready, result, isReplayed: replayed } = one;
    if (!isAccepted(result)) throw result!;
    const { deprecation } = ready!.action;
    const published = { data: result, replayed };
    return deprecation === undefined ? published : { ...published, meta: { deprecated: [deprecation] } };
  };

  /** @param signal ends the long checks; what is stored by then stays */
  readonly publishBatch = async (
    items: readonly BatchItem[],
    options: BatchOptions = {},
    signal?: AbortSignal,
  ): Promise<BatchResult> => {
    const { atomic = false, minimal = false } = checkQuery(BATCH_QUERY, options);
    this.#access.requireSome("publish");
    checkBatch(items);
    const caller = { caller: this.#access.caller, gone: signal };
    const all = items.map(begun);
    await this.#publishAll(all, { caller, isBatch: true, atomic, missing: new Map() });
    const result = batchResult(all);
    return minimal ? { ...result, data: [] } : result;
  };

  /** @throws EvregError `unavailable`, when nothing was stored */
  async #publishAll(all: readonly Publication[], request: PublishRequest): Promise<void> {
    const { atomic, isBatch } = request;
    for (let tries = 0; ;) {
      for (const one of all) {
        if (one.ready !== undefined || one.result !== undefined) continue;
        const turn = this.#turn(isBatch);
        if (turn !== undefined) await turn;
        try {
          const ready = this.#validate(one.item, request);
          one.ready = ready instanceof Promise ? await ready : ready;
        } catch (error) {
          if (!(error instanceof EvregError)) throw error;
          // That nothing can be read, or checked, is no fault of the item: while nothing is stored, all can come again.
          if (error.code === "unavailable" && !all.some(({ result }) => isAccepted(result)))
            throw unstored(error);
          one.result = error;
        }
      }
      const isRefused = atomic && all.some(({ result }) => result instanceof EvregError);
      // Their keys could have saved them, where the store is asked.
      if (isRefused) for (const one of all) one.result ??= one.ready?.fault;
      const open = all.filter(({ result }) => result === undefined);
      if (isRefused || open.length === 0) break;
      const isStale = await this.#record(open, all, request);
      if (atomic && !isStale) break;
      tries += isStale ? 1 : 0;
      if (tries === MAX_TRIES) refuseOpen(all, ({ action }) => schemaKeepsChanging(action));
    }
  }

  /** The items of batches share a part of each turn of the event loop. A single event waits for another turn after a long check only. */
  #turn(isBatch: boolean): Promise<void> | undefined {
    if (!isBatch) return this.#context.payloads.pause();
    return eventLoop.shouldYield() ? eventLoop.yield() : undefined;
  }

  /**
   * Answers at once when the action is cached, as a promise takes longer than most checks.
   * @throws the item's refusal
   */
  #validate(item: BatchItem, request: PublishRequest): ValidatedItem | Promise<ValidatedItem> {
    if (item instanceof EvregError) throw item;
    const { actions, limits } = this.#context;
    checkNewEvent(item, limits.payloadBytes);
    const action = actions.get(item.action);
    if (action !== undefined) return this.#check(item, action, request);
    const missing = request.missing?.get(item.action);
    if (missing !== undefined) throw missing;
    return actions.load(item.action).then(async (loaded) => {
      if (loaded === undefined) throw await this.#missing(item.action, request);
      return this.#check(item, loaded, request);
    });
  }

  async #missing(action: string, { missing = new Map() }: PublishRequest): Promise<EvregError> {
    const refusal =
      missing.size < MAX_SUGGESTIONS
        ? await missingAction(this.#context.store.catalog, this.#access, action, "action")
        : notFound("action", action, { field: "action" });
    missing.set(action, refusal);
    return refusal;
  }

  #check(
    item: NewEvent,
    action: LoadedAction,
    request: PublishRequest,
  ): ValidatedItem | Promise<ValidatedItem> {
    this.#access.require("publish", action.application, item.action);
    if (!action.takesEvents) return validated(item, action, takesNoEvents(item.action, action));
    const maxFailures = request.isBatch ? 1 : MAX_FAILURES;
    const failure = this.#context.payloads.failureOf(action, item.payload, request.caller, maxFailures);
    if (failure instanceof Promise) return failure.then((reason) => checked(item, action, reason));
    return checked(item, action, failure);
  }

  /**
   * Stores what is open. The deliveries of a single event that the engine has capacity for go to it at once; what else is due,
   * it claims. A store that fails after a part was stored refuses the rest: to fail as a whole would ask for all of it again.
   * @returns whether a schema had changed meanwhile
   */
  async #record(
    open: readonly Publication[],
    all: readonly Publication[],
    { isBatch, atomic }: PublishRequest,
  ): Promise<boolean> {
    const { store, clock, feed, background } = this.#context;
    const { engine } = background;
    const records = open.map(({ ready }) => ready!);
    const claim = isBatch ? undefined : engine?.claimOf(records[0]!.item.action);
    let claims: readonly Claim[] = [];
    let outcomes: readonly RecordOutcome[];
    try {
      outcomes = await store.events.record(records, clock.now(), { atomic, claim });
      const [first] = outcomes;
      if (first?.kind === "recorded" && first.claims !== undefined) ({ claims } = first);
    } catch (error) {
      if (!all.some(({ result }) => isAccepted(result))) throw error;
      refuseOpen(all, () => asEvregError(error));
      return false;
    } finally {
      feed.recorded();
      if (claim !== undefined) engine?.recorded(claim, claims);
    }
    if (isBatch && eventLoop.shouldYield()) await eventLoop.yield();
    const isStale = this.#settle(open, outcomes, isBatch);
    // Nothing of it was stored: all of it is checked by the new schema.
    if (atomic && isStale) for (const one of all) [one.ready, one.result] = [undefined, undefined];
    return isStale;
  }

  /** Answers whether a schema had changed meanwhile. */
  #settle(open: readonly Publication[], outcomes: readonly RecordOutcome[], isBatch: boolean): boolean {
    const { counts, background } = this.#context;
    let isDue = false;
    let isStale = false;
    for (const [place, one] of open.entries()) {
      const outcome = outcomes[place]!;
      one.result = this.#resultOf(one.ready!, outcome);
      if (outcome.kind === "recorded") {
        counts[isBatch ? "batch" : "single"] += 1;
        counts.queuedDeliveries += outcome.deliveries;
        isDue ||= outcome.deliveries > (outcome.claims?.length ?? 0);
      } else if (outcome.kind === "replayed") {
        one.isReplayed = true;
        counts[isBatch ? "replayedBatch" : "replayedSingle"] += 1;
      } else if (outcome.kind === "stale" && one.result === undefined) {
        one.ready = undefined;
        isStale = true;
      }
    }
    if (isDue) background.engine?.wake();
    return isStale;
  }

  /** The event, its refusal, or `undefined` when nothing was stored and it may be tried again. */
  #resultOf({ item, action, fault }: ValidatedItem, outcome: RecordOutcome): Event | EvregError | undefined {
    switch (outcome.kind) {
      case "recorded":
        return eventOf(item, outcome, action.revision);
      case "replayed":
        return eventOf(item, outcome, outcome.revision);
      case "key_conflict":
        return fault ?? keyConflict(item);
      case "stale":
        if (fault === undefined) this.#context.actions.foundStale(item.action, action);
        return fault;
      case "failed":
        return outcome.error;
      case "left_out":
        return undefined;
      default:
        return outcome satisfies never;
    }
  }
}

function begun(item: BatchItem): Publication {
  return { item, ready: undefined, result: undefined, isReplayed: false };
}

function isAccepted(result: Event | EvregError | undefined): result is Event {
  return result !== undefined && !(result instanceof EvregError);
}

/** The error with the word that nothing was stored, by which a caller without keys knows that it may send all again. */
function unstored({ code, message, details, retryAfterMs }: EvregError): EvregError {
  const error = new EvregError(code, message, { ...details, stored: false });
  return retryAfterMs === undefined ? error : Object.assign(error, { retryAfterMs });
}

function refuseOpen(all: readonly Publication[], why: (item: NewEvent) => EvregError): void {
  for (const one of all) one.result ??= why(one.item as NewEvent);
}

function checked(item: NewEvent, action: LoadedAction, failure: Failure | undefined): ValidatedItem {
  return validated(item, action, failure && nonConforming(item, failure));
}

/** @throws the fault, where no key could have been accepted before */
function validated(item: NewEvent, action: LoadedAction, fault?: EvregError): ValidatedItem {
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

/** The name of an action that an unchecked event has, unless no action can have it. */
function nameIn(item: unknown): string | undefined {
  const { action } = Object(item) as { readonly action?: unknown };
  return typeof action === "string" && action.length <= NAME_LENGTH ? action : undefined;
}

/**
 * What holds for an item whatever its action is; also for payloads that were not scanned.
 * @throws `invalid`, `too_large`, `malformed`
 */
export function checkNewEvent(item: NewEvent, payloadBytes: number): void {
  if (typeof item !== "object" || item === null) {
    throw invalidField("body", "must be an object with action and payload");
  }
  const { action, payload, idempotency_key: key } = item;
  if (typeof action !== "string") throw invalidField("action", "must be a string", action);
  // The store takes no such text, and would not know which field it is of.
  if (action.includes("\0")) throw invalidField("action", "must not hold the character U+0000", action);
  if (!(payload instanceof RawJson)) throw invalidField("payload", "must be an object");
  if (key !== undefined) checkIdempotencyKey("idempotency_key", key);
  if (payload.bytes.length > payloadBytes) throw tooLarge("payload", payload.bytes.length, payloadBytes);
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

function batchResult(all: readonly Publication[]): BatchResult {
  const accepted = all.filter(({ result }) => isAccepted(result));
  const deprecations = accepted.flatMap(({ ready }) => ready!.action.deprecation ?? []);
  const deprecated = [...new Map(deprecations.map((one) => [one.action, one])).values()];
  const meta = {
    accepted: accepted.length,
    rejected: all.length - accepted.length,
    replayed: all.filter(({ isReplayed }) => isReplayed).length,
  };
  return {
    data: all.map(({ result }) => (isAccepted(result) ? result : null)),
    errors: refusalsIn(all.map(({ result }) => result)),
    meta: deprecated.length === 0 ? meta : { ...meta, deprecated },
  };
}

function eventOf(
  { action, payload }: NewEvent,
  { rowid, timestampedMs }: { readonly rowid: number; readonly timestampedMs: number },
  revision: number,
): Event {
  return { rowid, action, payload, revision, timestamped: toIso(timestampedMs) };
}
