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
import type { CompiledSchema, PayloadValidator } from "./payload-checks.ts";
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

/** How long some work for a caller may take. */
interface TimeLimit {
  /** Interrupts what is waited for when the time is over, and when the caller has gone. */
  readonly signal: AbortSignal;
  /** Its reason when the time is over. */
  readonly isOver: EvregError;
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
    const failures: EventFailure[] = [];
    let checked = 0;
    let failed = 0;
    const walk = async (limit: TimeLimit): Promise<Walked> => {
      const checking = { caller, gone: limit.signal };
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
    await this.#within(CHECK_LIMITS.replayMs, signal, (limit) => this.#turns.run(caller, () => walk(limit)));
    return { checked, failed, failures };
  }

  /**
   * Finds the next events with a payload that conforms to a schema. Ends early when its time is over.
   * @throws `invalid` for what is no schema; `unavailable` when its time is over before the first event was looked at
   */
  async search(request: EventSearch, caller: unknown, signal?: AbortSignal): Promise<FoundEvents> {
    return this.#within(SEARCH_LIMITS.searchMs, signal, async (limit) => {
      const { where } = request;
      const warnings = await this.#options.schemaChecks.warnings("where", where, caller, limit.signal);
      const found = await this.#turns.run(caller, () => this.#search(request, limit, caller));
      return { ...found, warnings };
    });
  }

  /** @param gone aborted when nobody wants the work any more */
  async #within<T>(
    limitMs: number,
    gone: AbortSignal | undefined,
    work: (limit: TimeLimit) => Promise<T>,
  ): Promise<T> {
    const isOver = tooBusy();
    const over = new AbortController();
    const cancel = this.#options.clock.setTimer(() => over.abort(isOver), limitMs);
    const signal = gone === undefined ? over.signal : AbortSignal.any([gone, over.signal]);
    try {
      return await work({ signal, isOver });
    } finally {
      cancel();
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

  /** @throws the signal's reason, unless the time is over and some events were looked at */
  async #walk({ selection, atOnce, maxEvents, limit: { signal, isOver }, visit }: Walk): Promise<Walked> {
    let { after } = selection;
    let searched = 0;
    let total = 0;
    let hasMore = true;
    try {
      while (hasMore && searched < maxEvents) {
        signal.throwIfAborted();
        const before = searched;
        const limit = Math.min(atOnce, maxEvents - before);
        // The events are counted once.
        const counts = before === 0 ? undefined : false;
        const part = { after, limit, maxBytes: READ_BYTES, page: 1, total: counts };
        const page = await this.#options.events.list(
          omitUndefined<EventSelection>({ ...selection, ...part }),
        );
        const { events, ids } = page;
        if (before === 0) ({ total } = page);
        hasMore = page.isCut || ids.length === limit;
        let place = 0;
        for (const event of events) {
          if (eventLoop.shouldYield()) {
            await eventLoop.yield();
            signal.throwIfAborted();
          }
          const verdict = visit(event);
          const goesOn = typeof verdict === "boolean" ? verdict : await verdict;
          place = ids.indexOf(event.rowid, place) + 1;
          after = event.rowid;
          searched = before + place;
          if (!goesOn) return { searched, total, next: hasMore || place < ids.length ? after : undefined };
        }
        after = ids.at(-1) ?? after;
        searched = before + ids.length;
      }
    } catch (error) {
      if (error !== isOver || searched === 0) throw error;
      return { searched, total, next: after };
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
