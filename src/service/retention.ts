import { EvregError } from "../domain/error.ts";
import { type Clock, sleep } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { AuditStore } from "../store/history.ts";
import type { EventStore, RemovedEvents } from "../store/events.ts";

export interface RetentionOptions {
  readonly events: Pick<EventStore, "removeExpired">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly audit: Pick<AuditStore, "removeExpired">;
  /** How long events stay; without it, for good. */
  readonly retentionMs: number | undefined;
  /** How long it is told who changed what; 0 for good. */
  readonly auditMs: number;
}

const ROUND_EVERY_MS = 5 * 60_000;
/** How often events that stayed for an unfinished delivery are scanned again; they may be millions. */
const RESCAN_MS = 60 * 60_000;

/**
 * After each step comes a pause of so many times what it took, its wait in the store's queue included. On a busy store steps
 * take longer, so removing slows down when publishing and delivering need the time.
 */
const PAUSE_FACTOR = 4;
const MIN_PAUSE_MS = 5;
const MAX_PAUSE_MS = 1_000;
/** While the store takes no writes. */
const RETRY_MS = 10_000;

/** Removes events and kept changes that are too old, in rounds of small steps. */
export class Retention {
  readonly #options: RetentionOptions;
  #running: Promise<void> | undefined;
  readonly #stopping = new AbortController();
  /** All events before this time were scanned; those still there had an unfinished delivery then. */
  #scannedBeforeMs: number | undefined;
  #scannedAllMs = 0;

  constructor(options: RetentionOptions) {
    this.#options = options;
  }

  /** Starts the first round. A second start changes nothing. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when the running step has ended; the next start continues. Safe to call twice. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#round();
      } catch (error) {
        this.#options.logger.error(
          { err: error },
          "Removing old events failed; it is tried again in a while.",
        );
      }
      await this.#pause(ROUND_EVERY_MS);
    }
  }

  async #round(): Promise<void> {
    const { retentionMs, auditMs } = this.#options;
    if (retentionMs !== undefined) await this.#removeEvents(retentionMs);
    if (auditMs > 0) await this.#removeAudit(auditMs);
  }

  async #removeAudit(auditMs: number): Promise<void> {
    const { audit, clock } = this.#options;
    const beforeMs = clock.now() - auditMs;
    let removed: number | undefined;
    do {
      removed = await this.#step(() => audit.removeExpired(beforeMs));
    } while (removed !== undefined && removed > 0);
  }

  async #removeEvents(retentionMs: number): Promise<void> {
    const { events, clock, logger } = this.#options;
    const startedMs = clock.monotonicMs();
    const beforeMs = clock.now() - retentionMs;
    const isForAll = startedMs - this.#scannedAllMs >= RESCAN_MS;
    const fromMs = isForAll ? undefined : this.#scannedBeforeMs;
    const range = { beforeMs, ...(fromMs === undefined ? {} : { fromMs }) };
    const removed = { events: 0, deliveries: 0 };
    let next: number | undefined;
    const removeSome = (): Promise<RemovedEvents> => events.removeExpired(range, next);
    do {
      const step = await this.#step(removeSome);
      if (step === undefined) return;
      removed.events += step.events;
      removed.deliveries += step.deliveries;
      ({ next } = step);
    } while (next !== undefined);
    this.#scannedBeforeMs = beforeMs;
    if (isForAll) this.#scannedAllMs = startedMs;
    if (removed.events > 0) logger.info(removed, "Events older than retention.events were removed.");
  }

  /** Does it as soon as the store can, and pauses; `undefined` when it is stopped before. */
  async #step<T>(work: () => Promise<T>): Promise<T | undefined> {
    const { clock } = this.#options;
    while (!this.#stopping.signal.aborted) {
      const startedMs = clock.monotonicMs();
      try {
        const result = await work();
        const pauseMs = (clock.monotonicMs() - startedMs) * PAUSE_FACTOR;
        await this.#pause(Math.min(Math.max(pauseMs, MIN_PAUSE_MS), MAX_PAUSE_MS));
        return result;
      } catch (error) {
        // The store has said why in the log, and says when it takes writes again.
        if (!(error instanceof EvregError) || error.code !== "unavailable") throw error;
        await this.#pause(RETRY_MS);
      }
    }
    return undefined;
  }

  #pause(ms: number): Promise<void> {
    return sleep(this.#options.clock, ms, this.#stopping.signal);
  }
}
