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

interface Bounds {
  readonly most: number;
  readonly endMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Validates stored events against schemas that are not in force. One check at a time, so that what all of them hold in
 * memory is bounded, and an event a step, so that nobody else waits for long.
 */
export class EventChecks {
  readonly #parts: EventChecksParts;
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: EventChecksParts) {
    this.#parts = parts;
  }

  /**
   * The last events of an action, newest first.
   * @throws `unavailable` when checks that came before take all the time there is
   * @param signal ends it
   */
  run(action: string, schemata: Schemata, most: number, signal?: AbortSignal): Promise<CheckedEvents> {
    const endMs = this.#parts.clock.now() + CHECK_LIMITS.replayMs;
    const check = this.#last.then(() => this.#check(action, schemata, { most, endMs, signal }));
    this.#last = check.catch(() => undefined);
    return check;
  }

  async #check(action: string, schemata: Schemata, { most, endMs, signal }: Bounds): Promise<CheckedEvents> {
    const { store, clock, payloadChecks, payloadBytes } = this.#parts;
    signal?.throwIfAborted();
    if (clock.now() >= endMs) throw tooBusy();
    const validator = await loopPace.walk(compilingSchema(schemata));
    const atOnce = Math.max(1, Math.min(READ_EVENTS, Math.floor(READ_BYTES / payloadBytes)));
    const failures: EventFailure[] = [];
    let checked = 0;
    let failed = 0;
    let after: number | undefined;
    while (checked < most && clock.now() < endMs) {
      const limit = Math.min(atOnce, most - checked);
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
        const value = new RawJson(payload).value();
        const failure = await payloadChecks.failureUnder({ schemata, validator }, payload, value);
        checked += 1;
        if (failure === undefined) continue;
        failed += 1;
        const { field, message } = failure;
        if (failures.length < CHECK_LIMITS.failures) failures.push({ event: rowid, field, message });
      }
      if (events.length < limit) break;
      after = events.at(-1)!.rowid;
    }
    return { checked, failed, failures };
  }
}

function tooBusy(): EvregError {
  return new EvregError(
    "unavailable",
    "Checks that others asked for took all the time this one had. Try again, or check fewer events.",
  );
}
