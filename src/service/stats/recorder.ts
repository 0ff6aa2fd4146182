import { messageOf } from "../../domain/error.ts";
import { MINUTE_MS, STATS_LIMITS } from "../../domain/stats/stats.ts";
import type { EndedMinute, StatsCounts } from "../../metrics/stats/stats-counts.ts";
import { EMPTY_SLOT } from "../../metrics/stats/slot.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import { eventLoop } from "../../runtime/yielding.ts";
import type { StatsRow, StatsStore } from "../../store/stats.ts";
import { rowsOf } from "./rows.ts";

interface RecorderParts {
  readonly stats: StatsCounts;
  readonly store: Pick<StatsStore, "add" | "removeExpired">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** After a minute's end, so that what is counted late is in it. */
const DELAY_MS = 250;
/** Steps of removing in one round; a minute of 10,000 actions expires in 20 of them. */
const MAX_REMOVALS = 100;
/** After a longer gap this process was not there: the machine slept. */
const MAX_EMPTY_MINUTES = 3;

interface UnstoredRows {
  readonly startMs: number;
  readonly rows: readonly StatsRow[];
}

/** Stores what was counted, once a minute and when it stops, and removes what is too old. */
export class StatsRecorder {
  readonly #parts: RecorderParts;
  #cancel: () => void = () => {};
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;
  /** All minutes before it were told to the store. */
  #nextMs: number;
  /** Of minutes that were stored in part. */
  #left: UnstoredRows[] = [];

  constructor(parts: RecorderParts) {
    this.#parts = parts;
    this.#nextMs = minuteOf(parts.clock.now());
  }

  start(): void {
    const { clock } = this.#parts;
    const nowMs = clock.now();
    this.#cancel = clock.setTimer(
      () => {
        this.#running = this.#round().finally(() => {
          if (!this.#isStopped) this.start();
        });
      },
      minuteOf(nowMs) + MINUTE_MS + DELAY_MS - nowMs,
    );
  }

  /** Stores what there is, the present minute included. Safe to call twice. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancel();
    await this.#running;
    await this.#store({ all: true });
  }

  async #round(): Promise<void> {
    await this.#store();
    const { store, clock } = this.#parts;
    try {
      let removals = 0;
      while (!this.#isStopped && removals < MAX_REMOVALS) {
        if ((await store.removeExpired(clock.now() - STATS_LIMITS.keptMs)) === 0) return;
        removals += 1;
      }
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Never rejects: what could not be stored is stored the next time. */
  async #store(options?: { readonly all: boolean }): Promise<void> {
    const { stats } = this.#parts;
    stats.stores += 1;
    stats.storing = this.#storeMinutes(options).catch((error: unknown) => this.#failed(error));
    await stats.storing;
    stats.storing = undefined;
  }

  async #storeMinutes(options?: { readonly all: boolean }): Promise<void> {
    const { stats, store, clock } = this.#parts;
    await this.#storeLeft();
    const nowMs = clock.now();
    const ended = stats.takeEnded(nowMs, options);
    for (const minute of this.#withEmpty(ended, minuteOf(nowMs))) {
      let isFirst = true;
      for (const rows of rowsOf(stats, minute)) {
        if (eventLoop.shouldYield()) await eventLoop.yield();
        if (isFirst) await store.add(minute.startMs, rows);
        else this.#left.push({ startMs: minute.startMs, rows });
        isFirst = false;
      }
      stats.stored(minute);
      this.#nextMs = Math.max(this.#nextMs, minute.startMs + MINUTE_MS);
      await this.#storeLeft();
    }
  }

  async #storeLeft(): Promise<void> {
    for (let left = this.#left[0]; left !== undefined; left = this.#left[0]) {
      await this.#parts.store.add(left.startMs, left.rows);
      this.#left.shift();
    }
  }

  /** With the minutes in which nothing happened: that nothing did is known. */
  #withEmpty(ended: readonly EndedMinute[], nowMinuteMs: number): readonly EndedMinute[] {
    const known = new Set(ended.map(({ startMs }) => startMs));
    const fromMs = Math.max(this.#nextMs, nowMinuteMs - MAX_EMPTY_MINUTES * MINUTE_MS);
    const empty: EndedMinute[] = [];
    for (let startMs = fromMs; startMs < nowMinuteMs; startMs += MINUTE_MS) {
      if (!known.has(startMs)) empty.push({ startMs, slot: EMPTY_SLOT });
    }
    return [...ended, ...empty].toSorted((one, other) => one.startMs - other.startMs);
  }

  #failed(error: unknown): void {
    this.#parts.logger.debug(
      { error: messageOf(error) },
      "Figures could not be stored; they are with the next ones.",
    );
  }
}

function minuteOf(ms: number): number {
  return Math.floor(ms / MINUTE_MS) * MINUTE_MS;
}
