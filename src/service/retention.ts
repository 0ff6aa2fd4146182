import { EvregError } from "../domain/error.ts";
import { type Clock, sleep } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { EventStore, ExpiredSelection } from "../store/events.ts";

export interface RetentionOptions {
  readonly events: Pick<EventStore, "findExpired" | "remove">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long events are kept. */
  readonly keepMs: number;
}

const ROUND_EVERY_MS = 5 * 60_000;
/** So often it looks again at events that stayed for an unfinished delivery, which may be millions. */
const RESCAN_MS = 60 * 60_000;
/** Events that one question to the store is about. */
const SOME_EVENTS = 1_000;

/**
 * After each step comes a rest of so many times what it took, waiting in the store's queue included: on a busy store steps
 * take longer, and so pruning by itself becomes rare when publishing and delivering need the time.
 */
const PAUSE_FACTOR = 4;
const MIN_PAUSE_MS = 5;
const MAX_PAUSE_MS = 1_000;
/** While the store takes no writes. */
const RETRY_MS = 10_000;

/** Removes events that are older than they are to be kept, in rounds of small steps, for as long as it runs. */
export class Retention {
  readonly #parts: RetentionOptions;
  #running: Promise<void> | undefined;
  readonly #stopping = new AbortController();
  /** All events before this time were looked at; those still there had an unfinished delivery then. */
  #lookedBeforeMs: number | undefined;
  #lookedAtAllMs = 0;

  constructor(parts: RetentionOptions) {
    this.#parts = parts;
  }

  /** Begins the first round. A second start changes nothing. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when the step under way has ended; what is left is for the next start. Safe to call twice. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#round();
      } catch (error) {
        this.#parts.logger.error({ err: error }, "Removing old events failed; it is tried again in a while.");
      }
      await this.#rest(ROUND_EVERY_MS);
    }
  }

  async #round(): Promise<void> {
    const { events, clock, logger, keepMs } = this.#parts;
    const beganMs = clock.now();
    const beforeMs = beganMs - keepMs;
    // The clock may have been set, in either direction.
    const isForAll = Math.abs(beganMs - this.#lookedAtAllMs) >= RESCAN_MS;
    const fromMs = isForAll ? undefined : this.#lookedBeforeMs;
    const stretch = { beforeMs, most: SOME_EVENTS, ...(fromMs === undefined ? {} : { fromMs }) };
    const removed = { events: 0, deliveries: 0 };
    for (let after: number | undefined = 0; after !== undefined;) {
      const query: ExpiredSelection = { ...stretch, after };
      const found = await this.#step(() => events.findExpired(query));
      if (found === undefined) return;
      for (let left = found.events; left.length > 0;) {
        const some = left;
        const step = await this.#step(() => events.remove(some));
        if (step === undefined) return;
        removed.events += step.events;
        removed.deliveries += step.deliveries;
        left = left.slice(step.handled);
      }
      ({ after } = found);
    }
    this.#lookedBeforeMs = beforeMs;
    if (isForAll) this.#lookedAtAllMs = beganMs;
    if (removed.events > 0) logger.info(removed, "Events older than retention.events were removed.");
  }

  /** Does it as soon as the store can, and rests; `undefined` when it is stopped before. */
  async #step<T>(work: () => Promise<T>): Promise<T | undefined> {
    const { clock } = this.#parts;
    while (!this.#stopping.signal.aborted) {
      const beganMs = clock.now();
      try {
        const result = await work();
        const restMs = (clock.now() - beganMs) * PAUSE_FACTOR;
        await this.#rest(Math.min(Math.max(restMs, MIN_PAUSE_MS), MAX_PAUSE_MS));
        return result;
      } catch (error) {
        // The store has said why in the log, and says when it takes writes again.
        if (!(error instanceof EvregError) || error.code !== "unavailable") throw error;
        await this.#rest(RETRY_MS);
      }
    }
    return undefined;
  }

  #rest(ms: number): Promise<void> {
    return sleep(this.#parts.clock, ms, this.#stopping.signal);
  }
}
