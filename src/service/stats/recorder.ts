import { messageOf } from "../../domain/error.ts";
import { floorTo, MINUTE_MS, TEN_SECONDS_MS } from "../../domain/stats/stats.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { RefusedCount, StatsStore } from "../../store/history.ts";
import { Rounds } from "../rounds.ts";

interface RecorderParts {
  readonly store: Pick<StatsStore, "countRefused" | "noteRunning" | "removeExpired">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** It waits so long after the end of a minute, so that the minute is over by any clock. */
const DELAY_MS = 250;
/** Steps of removing in a minute: of 200,000 rows. */
const MAX_REMOVALS = 400;
/** After a longer gap this process was not there: the machine slept. */
const MAX_EMPTY_MS = 3 * MINUTE_MS;
/** What is refused counts for no action once there are so many. */
const MAX_REFUSED = 10_000;

/**
 * Counts what is refused, of which nothing else is stored: in memory until a minute is over, or figures are read. It also has the
 * store note that this process runs, and remove what is too old.
 */
export class StatsRecorder {
  readonly #parts: RecorderParts;
  #refused = new Map<string, RefusedCount>();
  readonly #failures = new WeakSet<object>();
  readonly startedMs: number;
  /** It is noted that this process ran until then. */
  #notedMs: number;
  readonly #rounds: Rounds;
  #writing: Promise<void> = Promise.resolve();

  constructor(parts: RecorderParts) {
    this.#parts = parts;
    this.startedMs = parts.clock.now();
    this.#notedMs = floorTo(this.startedMs, TEN_SECONDS_MS);
    const { clock, logger } = parts;
    this.#rounds = new Rounds({
      clock,
      logger,
      waitMs() {
        const nowMs = clock.now();
        return floorTo(nowMs, MINUTE_MS) + MINUTE_MS + DELAY_MS - nowMs;
      },
      work: (stopping) => this.#round(stopping),
      failed: "Old figures could not be removed; it is tried again in a minute.",
    });
  }

  /**
   * Counts each failure once, by whoever comes first.
   * @param action of which the event is, if that is known
   */
  refused(failure: object, action = ""): void {
    if (this.#failures.has(failure)) return;
    this.#failures.add(failure);
    this.#add({ atMs: floorTo(this.#parts.clock.now(), TEN_SECONDS_MS), action, count: 1 });
  }

  #add({ atMs, action, count }: RefusedCount): void {
    const counted = this.#refused.size < MAX_REFUSED ? action : "";
    const key = `${atMs} ${counted}`;
    const before = this.#refused.get(key)?.count ?? 0;
    this.#refused.set(key, { atMs, action: counted, count: before + count });
  }

  /** Writes what was refused. Never rejects: where the store takes no writes, that is kept until it does. */
  writeRefused(): Promise<void> {
    this.#writing = this.#writeRefused(this.#writing);
    return this.#writing;
  }

  async #writeRefused(before: Promise<void>): Promise<void> {
    await before;
    if (this.#refused.size === 0) return;
    const counts = [...this.#refused.values()];
    this.#refused = new Map();
    try {
      await this.#parts.store.countRefused(counts);
    } catch (error) {
      for (const count of counts) this.#add(count);
      this.#failed(error);
    }
  }

  start(): void {
    this.#rounds.start();
  }

  /** Safe to call twice. */
  async stop(): Promise<void> {
    await this.#rounds.stop();
    await this.#note();
  }

  async #round(stopping: AbortSignal): Promise<void> {
    await this.#note();
    const { store, clock } = this.#parts;
    for (let removals = 0; !stopping.aborted && removals < MAX_REMOVALS; removals += 1) {
      if ((await store.removeExpired(clock.now())) === 0) return;
    }
  }

  /** Writes what was refused, and that this process ran until now. Never rejects. */
  async #note(): Promise<void> {
    await this.writeRefused();
    const { store, clock } = this.#parts;
    const toMs = floorTo(clock.now(), TEN_SECONDS_MS);
    // The clock may have been set back.
    const fromMs = Math.max(Math.min(this.#notedMs, toMs), toMs - MAX_EMPTY_MS);
    try {
      if (fromMs < toMs) await store.noteRunning({ fromMs, toMs });
      this.#notedMs = toMs;
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    this.#parts.logger.debug(
      { error: messageOf(error) },
      "Figures could not be stored; they are stored with the next ones.",
    );
  }
}
