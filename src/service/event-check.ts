import { CHECK_LIMITS } from "../domain/action.ts";
import type { CheckedEvents, EventFailure, Schemata } from "../domain/action.ts";
import { EvregError } from "../domain/error.ts";
import { RawJson } from "../json/raw-json.ts";
import type { Clock } from "../runtime/clock.ts";
import { loopPace } from "../runtime/pace.ts";
import { compilingSchema } from "../schema/compile.ts";
import type { Store } from "../store/store.ts";
import type { PayloadChecks } from "./payload-checks.ts";

/** Events read at once, where their payloads are small; of large ones, as many as this many bytes can hold. */
const READ_EVENTS = 100;
const READ_BYTES = 16 * 1024 * 1024;

export interface EventChecksParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly payloadChecks: Pick<PayloadChecks, "failureUnder">;
  /** The most that one payload may have. */
  readonly payloadBytes: number;
}

/** What is to be held to what. */
export interface AskedCheck {
  readonly action: string;
  readonly schemata: Schemata;
  /** Events, the newest first. */
  readonly most: number;
}

interface Bounds {
  readonly caller: object;
  readonly endMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Validates stored events against schemas that are not in force. One check of each caller at a time, whose pages of events
 * take turns: so nobody waits for all that another has asked for, and what they hold in memory is one page. An event is a
 * step, so that what else runs does not wait for long.
 */
export class EventChecks {
  readonly #parts: EventChecksParts;
  /** The last check of each caller. */
  readonly #last = new WeakMap<object, Promise<unknown>>();
  /** The page that was asked for last. */
  #page: Promise<unknown> = Promise.resolve();

  constructor(parts: EventChecksParts) {
    this.#parts = parts;
  }

  /**
   * The last events of an action, newest first.
   * @throws `unavailable` when checks that came before take all the time there is
   * @param caller the same object for the same caller
   * @param signal ends it
   */
  run(asked: AskedCheck, caller: object, signal?: AbortSignal): Promise<CheckedEvents> {
    const endMs = this.#parts.clock.now() + CHECK_LIMITS.replayMs;
    const before = this.#last.get(caller) ?? Promise.resolve();
    const check = before.then(() => this.#check(asked, { caller, endMs, signal }));
    this.#last.set(
      caller,
      check.catch(() => undefined),
    );
    return check;
  }

  /** Those that wait come in the order of asking, each with one page: by turns. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#page.then(work);
    this.#page = turn.catch(() => undefined);
    return turn;
  }

  async #check(
    { action, schemata, most }: AskedCheck,
    { caller, endMs, signal }: Bounds,
  ): Promise<CheckedEvents> {
    const { store, clock, payloadChecks, payloadBytes } = this.#parts;
    signal?.throwIfAborted();
    if (clock.now() >= endMs) throw tooBusy();
    const candidate = { schemata, validator: await loopPace.walk(compilingSchema(schemata)) };
    const asker = { caller, gone: signal };
    const atOnce = Math.max(1, Math.min(READ_EVENTS, Math.floor(READ_BYTES / payloadBytes)));
    const failures: EventFailure[] = [];
    /** With those that are damaged, which cannot be checked. */
    let looked = 0;
    let checked = 0;
    let failed = 0;
    let after: number | undefined;
    /** Whether there may be more. */
    const checkPage = async (): Promise<boolean> => {
      signal?.throwIfAborted();
      if (clock.now() >= endMs) {
        if (checked === 0) throw tooBusy();
        return false;
      }
      const limit = Math.min(atOnce, most - looked);
      const page = {
        action,
        order: "desc",
        limit,
        page: 1,
        ...(after === undefined ? {} : { after }),
      } as const;
      const { events } = await store.listEvents(page);
      for (const { rowid, payload } of events) {
        if (!loopPace.mayGoOn()) await loopPace.breathe();
        signal?.throwIfAborted();
        if (payload === undefined) continue;
        const failure = await payloadChecks.failureUnder(candidate, new RawJson(payload), asker);
        checked += 1;
        if (failure === undefined) continue;
        failed += 1;
        const { field, message } = failure;
        if (failures.length < CHECK_LIMITS.failures) failures.push({ event: rowid, field, message });
      }
      after = events.at(-1)?.rowid;
      looked += events.length;
      return events.length === limit && looked < most;
    };
    while (await this.#inTurn(checkPage));
    return { checked, failed, failures };
  }
}

function tooBusy(): EvregError {
  return new EvregError(
    "unavailable",
    "Checks that were asked for before took all the time this one had. Try again, or check fewer events.",
  );
}
