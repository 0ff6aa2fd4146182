import { CHECK_LIMITS, type CheckedEvents, type EventFailure, type Schemata } from "../domain/action.ts";
import { EvregError } from "../domain/error.ts";
import { SEARCH_LIMITS } from "../domain/event.ts";
import { RawJson } from "../json/raw-json.ts";
import type { Clock } from "../runtime/clock.ts";
import { eventLoop } from "../runtime/yielding.ts";
import { compileSchemaSteps, type ValidationCaller } from "../schema/validate/compile.ts";
import type {
  EventPage,
  EventSelection,
  EventStore,
  StoredEvent,
  WantedDeliveries,
} from "../store/events.ts";
import { neededTexts } from "../schema/needed-texts.ts";
import type { Candidate, PayloadValidator } from "./payload-validator.ts";

/** Events read at once. */
const READ_EVENTS = 100;
/** Between two turns of others a search reads more: most of what it reads does not match, and is dropped at once. */
const SEARCH_READ_EVENTS = 250;
/** The more, where the store leaves out nearly all of them by itself. */
const HOLDING_READ_EVENTS = 1_000;
/** Of the payloads of a page; one is looked at while the next one is read. */
const READ_BYTES = SEARCH_LIMITS.bytes / 2;

interface StoredEventsOptions {
  readonly events: Pick<EventStore, "list" | "withDeliveries">;
  readonly clock: Clock;
  readonly payloads: Pick<PayloadValidator, "failureUnder" | "conforms">;
}

interface StoredEventCheck {
  readonly action: string;
  readonly schemata: Schemata;
  /** How many of the newest. */
  readonly maxEvents: number;
}

/** `limit` is how many are looked for; `payloads` whether they come with what is in them. */
interface EventSearch extends Omit<EventSelection, "page"> {
  readonly where?: Schemata | undefined;
  readonly deliveries?: WantedDeliveries | undefined;
}

export interface FoundEvents {
  readonly events: readonly StoredEvent[];
  /** Of all events that the search is to go through. */
  readonly total: number;
  readonly searched: number;
  /** The event after which the search goes on; `undefined` where all were gone through. */
  readonly next: number | undefined;
}

/** How far one walk goes. */
interface Walk {
  readonly selection: Omit<EventSelection, "limit" | "page">;
  readonly atOnce: number;
  readonly maxEvents: number;
  readonly endMs: number;
  readonly caller: ValidationCaller;
  /** Which of a page's events are looked at; all, if it is left out. */
  readonly select?: ((ids: readonly number[]) => Promise<readonly number[]>) | undefined;
  /** Looks at one event; answers whether to go on. */
  readonly visit: (event: StoredEvent) => Promise<boolean> | boolean;
}

interface Walked {
  readonly read: number;
  readonly total: number;
  /** The last one, where there may be more behind it. */
  readonly next: number | undefined;
}

/** A page that is being read, and how many events it may have. */
interface Reading {
  readonly page: Promise<EventPage>;
  readonly limit: number;
}

/**
 * Checks stored events by schemas that are not in force. Each caller has one walk at a time. Walks take turns page by page,
 * so that no caller waits for a whole walk of another. Only the page that is looked at is in memory, and the one that a walk
 * reads ahead when no other waits.
 */
export class StoredEvents {
  readonly #options: StoredEventsOptions;
  /** Each settles without an error. */
  readonly #lastWalks = new WeakMap<object, Promise<unknown>>();
  #lastPage: Promise<unknown> = Promise.resolve();
  /** Walks that have a turn or wait for one. */
  #turns = 0;

  constructor(options: StoredEventsOptions) {
    this.#options = options;
  }

  /**
   * Whether the last events of an action, newest first, conform to a schema.
   * @throws `unavailable` when earlier walks take all the time there is
   * @param caller the same object for the same caller
   * @param signal ends it
   */
  check(request: StoredEventCheck, caller: object, signal?: AbortSignal): Promise<CheckedEvents> {
    const endMs = this.#options.clock.now() + CHECK_LIMITS.replayMs;
    return this.#afterOthersOf(caller, () => this.#check(request, endMs, { caller, gone: signal }));
  }

  /** The next events with such deliveries and a payload that conforms to a schema, as `check`. Ends early where too few have. */
  search(request: EventSearch, caller: object, signal?: AbortSignal): Promise<FoundEvents> {
    const endMs = this.#options.clock.now() + SEARCH_LIMITS.searchMs;
    return this.#afterOthersOf(caller, () => this.#search(request, endMs, { caller, gone: signal }));
  }

  async #check(
    { action, schemata, maxEvents }: StoredEventCheck,
    endMs: number,
    caller: ValidationCaller,
  ): Promise<CheckedEvents> {
    const candidate = await this.#candidate(schemata, endMs, caller);
    const failures: EventFailure[] = [];
    let checked = 0;
    let failed = 0;
    const explaining = { ...caller, explained: { left: CHECK_LIMITS.failures } };
    await this.#walk({
      selection: { action, order: "desc" },
      atOnce: READ_EVENTS,
      maxEvents,
      endMs,
      caller,
      visit: async ({ rowid, payload }) => {
        // Damaged.
        if (payload === undefined) return true;
        const failure = await this.#options.payloads.failureUnder(
          candidate,
          new RawJson(payload),
          explaining,
        );
        checked += 1;
        if (failure === undefined) return true;
        failed += 1;
        const { field, message } = failure;
        if (failures.length < CHECK_LIMITS.failures) failures.push({ event: rowid, field, message });
        return true;
      },
    });
    return { checked, failed, failures };
  }

  async #search(
    { where, deliveries, limit, payloads: isWhole = true, ...selection }: EventSearch,
    endMs: number,
    caller: ValidationCaller,
  ): Promise<FoundEvents> {
    const { events: store, payloads } = this.#options;
    const candidate = where === undefined ? undefined : await this.#candidate(where, endMs, caller);
    const { applications } = selection;
    const wanted = (deliveries?.outcome ?? deliveries?.key) === undefined ? undefined : deliveries;
    const events: StoredEvent[] = [];
    let foundBytes = 0;
    const holding = where === undefined ? [] : neededTexts(where);
    const sieve = holding.length === 0 ? {} : { holding };
    const { read, total, next } = await this.#walk({
      selection: { ...selection, ...sieve, payloads: isWhole || candidate !== undefined },
      atOnce: holding.length === 0 ? SEARCH_READ_EVENTS : HOLDING_READ_EVENTS,
      select: wanted && ((ids) => store.withDeliveries(ids, wanted, applications)),
      maxEvents: SEARCH_LIMITS.events,
      endMs,
      caller,
      visit(event) {
        if (candidate === undefined) return goesOn(event, true);
        if (event.payload === undefined) return true;
        const conforms = payloads.conforms(candidate, new RawJson(event.payload), caller);
        return typeof conforms === "boolean"
          ? goesOn(event, conforms)
          : conforms.then((answer) => goesOn(event, answer));
      },
    });
    return { events, total, searched: read, next };

    function goesOn(event: StoredEvent, isFound: boolean): boolean {
      if (!isFound) return true;
      const found = isWhole ? event : { ...event, payload: undefined };
      events.push(found);
      foundBytes += found.payload?.byteLength ?? 0;
      return events.length < limit && foundBytes < SEARCH_LIMITS.bytes;
    }
  }

  async #candidate(schemata: Schemata, endMs: number, caller: ValidationCaller): Promise<Candidate> {
    caller.gone?.throwIfAborted();
    if (this.#options.clock.now() >= endMs) throw tooBusy();
    return { schemata, validator: await eventLoop.run(compileSchemaSteps(schemata)) };
  }

  async #walk({ selection, atOnce, maxEvents, endMs, caller, select, visit }: Walk): Promise<Walked> {
    const { clock, events } = this.#options;
    let read = 0;
    let total = 0;
    let { after } = selection;
    let hasMore = true;
    let ahead: Reading | undefined;
    const readAfter = (cursor: number | undefined, limit: number): Reading => {
      const onward = cursor === undefined ? {} : { after: cursor };
      const counted = read === 0 ? {} : { total: false };
      const query = { ...selection, ...onward, ...counted, limit, maxBytes: READ_BYTES, page: 1 };
      return { limit, page: events.list(query) };
    };
    /** Answers whether the walk goes on. */
    const readPage = async (): Promise<boolean> => {
      const reading = ahead;
      ahead = undefined;
      caller.gone?.throwIfAborted();
      if (clock.now() >= endMs) {
        if (read === 0) throw tooBusy();
        return false;
      }
      const isFirst = read === 0;
      const { page: given, limit } = reading ?? readAfter(after, Math.min(atOnce, maxEvents - read));
      const page = await given;
      // It may have been there already, and then nothing else had a turn.
      if (reading !== undefined) await eventLoop.yield();
      if (isFirst) ({ total } = page);
      const readBefore = read;
      hasMore = page.isCut || page.seen === limit;
      const left = Math.min(atOnce, maxEvents - read - page.seen);
      // Not behind the first one: where most events match, it has enough of them.
      if (
        !isFirst &&
        hasMore &&
        left > 0 &&
        this.#turns === 1 &&
        clock.now() < endMs &&
        caller.gone?.aborted !== true
      ) {
        ahead = readAfter(page.last ?? after, left);
        // Nobody may come for it.
        ahead.page.catch(() => undefined);
      }
      const selected = select && new Set(await select(page.events.map(({ rowid }) => rowid)));
      for (const [index, event] of page.events.entries()) {
        if (eventLoop.shouldYield()) await eventLoop.yield();
        caller.gone?.throwIfAborted();
        after = event.rowid;
        read = readBefore + page.places[index]!;
        if (selected?.has(event.rowid) === false) continue;
        const goesOn = visit(event);
        if (typeof goesOn === "boolean" ? goesOn : await goesOn) continue;
        hasMore ||= page.places[index]! < page.seen;
        return false;
      }
      after = page.last ?? after;
      read = readBefore + page.seen;
      return hasMore && read < maxEvents;
    };
    while (await this.#inTurn(readPage));
    return { read, total, next: hasMore ? after : undefined };
  }

  #afterOthersOf<T>(caller: object, walk: () => Promise<T>): Promise<T> {
    const started = (this.#lastWalks.get(caller) ?? Promise.resolve()).then(walk);
    this.#lastWalks.set(
      caller,
      started.catch(() => undefined),
    );
    return started;
  }

  /** Pages in the order of their requests. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.#turns += 1;
    const turn = this.#lastPage.then(work).finally(() => (this.#turns -= 1));
    this.#lastPage = turn.catch(() => undefined);
    return turn;
  }
}

function tooBusy(): EvregError {
  return new EvregError(
    "unavailable",
    "Checks and searches that were asked for before took all the time this one had. Try again, or ask for fewer events.",
  );
}
