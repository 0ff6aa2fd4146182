import {
  CHECK_LIMITS,
  type CheckedEvents,
  type EventFailure,
  type Schemata,
  type SchemaWarning,
} from "../domain/action.ts";
import { EvregError } from "../domain/error.ts";
import { SEARCH_LIMITS } from "../domain/event.ts";
import { RawJson } from "../json/raw-json.ts";
import type { Clock } from "../runtime/clock.ts";
import { eventLoop } from "../runtime/yielding.ts";
import { compileSchemaSteps } from "../schema/validate/compile.ts";
import type { EventSelection, EventStore, StoredEvent } from "../store/events.ts";
import { neededTexts } from "../schema/needed-texts.ts";
import { CallerTurns } from "./caller-turns.ts";
import type { SchemaChecks } from "./schema-checks.ts";
import type { CompiledSchema, PayloadValidator } from "./compiled-actions.ts";
import { omitUndefined } from "./requests.ts";

/** Events read at once. */
const READ_EVENTS = 100;
/** A search reads more: most of what it reads does not match, and is dropped at once. */
const SEARCH_READ_EVENTS = 250;
/** The more, where the store leaves out nearly all of them by itself. */
const HOLDING_READ_EVENTS = 1_000;
/** Bytes of the payloads of a page. */
const READ_BYTES = 1024 * 1024;

interface StoredEventsOptions {
  readonly events: Pick<EventStore, "list">;
  readonly clock: Clock;
  readonly payloads: Pick<PayloadValidator, "failureOf" | "conforms">;
  readonly schemaChecks: SchemaChecks;
}

/** `limit` is how many are looked for; `payloads` whether they come with what is in them. */
interface EventSearch extends Omit<EventSelection, "page"> {
  readonly where: Schemata;
}

/** How far one walk goes. */
interface Walk {
  readonly selection: Omit<EventSelection, "limit" | "page">;
  readonly atOnce: number;
  readonly maxEvents: number;
  readonly limit: TimeLimit;
  /** Looks at one event; answers whether to go on. */
  readonly visit: (event: StoredEvent) => Promise<boolean> | boolean;
}

interface Walked {
  readonly searched: number;
  /** How many events the walk is to go through. */
  readonly total: number;
  /** The event after which it goes on; `undefined` where all were gone through. */
  readonly next: number | undefined;
}

export interface FoundEvents extends Walked {
  readonly events: readonly StoredEvent[];
  /** What in `where` is probably a slip. */
  readonly warnings: readonly SchemaWarning[];
}

/**
 * Checks stored events by schemas that are not in force. Each caller has one walk at a time, and walks of several callers go
 * side by side: they share the slices of the event loop, the store's reads and the thread for long checks. Of each walk one
 * small page is in memory.
 */
export class StoredEvents {
  readonly #options: StoredEventsOptions;
  readonly #turns = new CallerTurns();

  constructor(options: StoredEventsOptions) {
    this.#options = options;
  }

  /**
   * Whether so many of the last events of an action, newest first, conform to a schema.
   * @throws `unavailable` when earlier walks take all the time there is
   * @param caller the same value for the same caller
   * @param signal ends it
   */
  async check(
    { action, schemata, maxEvents }: { action: string; schemata: Schemata; maxEvents: number },
    caller: unknown,
    signal?: AbortSignal,
  ): Promise<CheckedEvents> {
    const limit = new TimeLimit(this.#options.clock, CHECK_LIMITS.replayMs, tooBusy(), signal);
    const failures: EventFailure[] = [];
    let checked = 0;
    let failed = 0;
    const checking = { caller, gone: limit.signal };
    const walk = async (): Promise<Walked> => {
      const candidate = await candidateOf(schemata, limit);
      const visit = async ({ rowid, payload }: StoredEvent): Promise<boolean> => {
        // Damaged.
        if (payload === undefined) return true;
        const failure = await this.#options.payloads.failureOf(candidate, new RawJson(payload), checking);
        checked += 1;
        if (failure === undefined) return true;
        failed += 1;
        const { field, message } = failure;
        if (failures.length < CHECK_LIMITS.failures) failures.push({ event: rowid, field, message });
        return true;
      };
      return this.#walk({
        selection: { action, order: "desc" },
        atOnce: READ_EVENTS,
        maxEvents,
        limit,
        visit,
      });
    };
    await this.#turns.run(caller, walk).finally(() => limit.end());
    return { checked, failed, failures };
  }

  /**
   * Finds the next events with a payload that conforms to a schema. Ends early when its time is over.
   * @throws `invalid` for what is no schema; `unavailable` when its time is over before the first event was looked at
   */
  async search(request: EventSearch, caller: unknown, signal?: AbortSignal): Promise<FoundEvents> {
    const { clock, schemaChecks } = this.#options;
    const { where } = request;
    const limit = new TimeLimit(clock, SEARCH_LIMITS.searchMs, tooBusy(), signal);
    try {
      const warnings = await schemaChecks.warnings("where", where, caller, limit.signal);
      const found = await this.#turns.run(caller, () => this.#search(request, limit, caller));
      return { ...found, warnings };
    } finally {
      limit.end();
    }
  }

  async #search(
    { where, limit: wantedEvents, payloads: isWhole = true, ...selection }: EventSearch,
    limit: TimeLimit,
    caller: unknown,
  ): Promise<Omit<FoundEvents, "warnings">> {
    const { payloads } = this.#options;
    const candidate = await candidateOf(where, limit);
    const checking = { caller, gone: limit.signal };
    const events: StoredEvent[] = [];
    let foundBytes = 0;
    const holding = neededTexts(where);
    const sieve = holding.length === 0 ? {} : { holding };
    const walked = await this.#walk({
      selection: { ...selection, ...sieve, payloads: true },
      atOnce: holding.length === 0 ? SEARCH_READ_EVENTS : HOLDING_READ_EVENTS,
      maxEvents: SEARCH_LIMITS.events,
      limit,
      visit(event) {
        if (event.payload === undefined) return true;
        const conforms = payloads.conforms(candidate, new RawJson(event.payload), checking);
        return typeof conforms === "boolean"
          ? goesOn(event, conforms)
          : conforms.then((answer) => goesOn(event, answer));
      },
    });
    return { ...walked, events };

    function goesOn(event: StoredEvent, isFound: boolean): boolean {
      if (!isFound) return true;
      const shown = isWhole ? event : { ...event, payload: undefined };
      events.push(shown);
      foundBytes += shown.payload?.byteLength ?? 0;
      return events.length < wantedEvents && foundBytes < SEARCH_LIMITS.bytes;
    }
  }

  async #walk({ selection, atOnce, maxEvents, limit: time, visit }: Walk): Promise<Walked> {
    let { after } = selection;
    let searched = 0;
    let total = 0;
    let hasMore = true;
    const endedEarly = (): Walked => {
      time.throwIfGone();
      if (searched === 0) throw tooBusy();
      return { searched, total, next: after };
    };
    while (hasMore && searched < maxEvents) {
      if (time.isOver) return endedEarly();
      const before = searched;
      const limit = Math.min(atOnce, maxEvents - before);
      // The events are counted once.
      const counts = before === 0 ? undefined : false;
      const part = { after, limit, maxBytes: READ_BYTES, page: 1, total: counts };
      const page = await this.#options.events.list(omitUndefined<EventSelection>({ ...selection, ...part }));
      const { events, places, seen, last = after } = page;
      if (before === 0) ({ total } = page);
      hasMore = page.isCut || seen === limit;
      for (const [index, event] of events.entries()) {
        if (eventLoop.shouldYield()) {
          await eventLoop.yield();
          if (time.isOver) return endedEarly();
        }
        const verdict = visit(event);
        const goesOn = typeof verdict === "boolean" ? verdict : await time.unlessOver(verdict);
        if (goesOn === undefined) return endedEarly();
        const place = places[index]!;
        after = event.rowid;
        searched = before + place;
        if (!goesOn) return { searched, total, next: hasMore || place < seen ? after : undefined };
      }
      after = last;
      searched = before + seen;
    }
    return { searched, total, next: hasMore ? after : undefined };
  }
}

async function candidateOf(schemata: Schemata, { signal }: TimeLimit): Promise<CompiledSchema> {
  return { schemata, validator: await eventLoop.run(compileSchemaSteps(schemata), signal) };
}

function tooBusy(): EvregError {
  return new EvregError(
    "unavailable",
    "Checks and searches that were asked for before took all the time this one had. Try again, or ask for fewer events.",
  );
}

/** Takes the place of a payload that is damaged or not asked for. No other is `null`, as each is an object. */
const NO_PAYLOAD = RawJson.fromText("null");

export function payloadOf(stored: Uint8Array | undefined): RawJson {
  return stored === undefined ? NO_PAYLOAD : new RawJson(stored);
}

/** How long some work for a caller may take. Its signal interrupts what is waited for, also when the caller has gone. */
class TimeLimit {
  readonly signal: AbortSignal;
  readonly #clock: Clock;
  readonly #endMs: number;
  readonly #gone: AbortSignal | undefined;
  readonly #cancel: () => void;

  /**
   * @param reason of the signal when the time is over
   * @param gone aborted when nobody wants the work any more
   */
  constructor(clock: Clock, limitMs: number, reason: Error, gone?: AbortSignal) {
    const over = new AbortController();
    this.signal = gone === undefined ? over.signal : AbortSignal.any([gone, over.signal]);
    this.#clock = clock;
    this.#endMs = clock.monotonicMs() + limitMs;
    this.#gone = gone;
    this.#cancel = clock.setTimer(() => over.abort(reason), limitMs);
  }

  /** Whether the time is over or the caller has gone. A busy thread comes late to its timers. */
  get isOver(): boolean {
    return this.signal.aborted || this.#clock.monotonicMs() >= this.#endMs;
  }

  throwIfGone(): void {
    this.#gone?.throwIfAborted();
  }

  /** The outcome of work that heeds the signal, or `undefined` where that has interrupted it. */
  async unlessOver<T>(work: Promise<T>): Promise<T | undefined> {
    try {
      return await work;
    } catch (error) {
      if (this.signal.aborted && error === this.signal.reason) return undefined;
      throw error;
    }
  }

  /** Frees the timer once the work is done. */
  end(): void {
    this.#cancel();
  }
}
