import { messageOf } from "../../domain/error.ts";
import { floorTo, MINUTE_MS, TEN_SECONDS_MS } from "../../domain/stats/stats.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { RefusedCount, StatsStore } from "../../store/history.ts";

interface RecorderParts {
  readonly store: Pick<StatsStore, "countRefused" | "fold" | "removeExpired">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** After the end of ten seconds, so that what was under way at their end is in them. */
const DELAY_MS = 250;
/** Steps of removing in a minute, in which 10,000 actions leave 140,000 rows. */
const MAX_REMOVALS = 400;
/** After a longer gap this process was not there: the machine slept. */
const MAX_EMPTY_MS = 3 * MINUTE_MS;
/** Beyond, what is refused counts for no action. */
const MAX_REFUSED = 10_000;

/**
 * Counts what is refused, of which nothing else is stored: in memory until ten seconds are over, or figures are read. It also has the
 * store fold what that counted, and remove what is too old.
 */
export class StatsRecorder {
  readonly #parts: RecorderParts;
  #refused = new Map<string, RefusedCount>();
  readonly #failures = new WeakSet<object>();
  readonly startedMs: number;
  /** What happened before it is known to the store. */
  #knownMs: number;
  #cancel: () => void = () => {};
  #running: Promise<void> = Promise.resolve();
  #writing: Promise<void> = Promise.resolve();
  #isStopped = false;
  /** While counts are folded. */
  folding: Promise<void> | undefined;
  /** How often that has begun. */
  folds = 0;

  constructor(parts: RecorderParts) {
    this.#parts = parts;
    this.startedMs = parts.clock.now();
    this.#knownMs = floorTo(this.startedMs, TEN_SECONDS_MS);
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
    const { clock } = this.#parts;
    const nowMs = clock.now();
    this.#cancel = clock.setTimer(
      () => {
        this.#running = this.#round().finally(() => {
          if (!this.#isStopped) this.start();
        });
      },
      floorTo(nowMs, TEN_SECONDS_MS) + TEN_SECONDS_MS + DELAY_MS - nowMs,
    );
  }

  /** Safe to call twice. What is counted and not folded is folded after the next start. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancel();
    await this.#running;
    await this.writeRefused();
    await this.#fold(TEN_SECONDS_MS);
  }

  async #round(): Promise<void> {
    await this.writeRefused();
    const before = this.#knownMs;
    await this.#fold(MINUTE_MS);
    if (this.#knownMs === before) return;
    const { store, clock } = this.#parts;
    try {
      let removals = 0;
      while (!this.#isStopped && removals < MAX_REMOVALS) {
        if ((await store.removeExpired(clock.now())) === 0) return;
        removals += 1;
      }
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Never rejects: what could not be folded is folded the next time. */
  async #fold(knownSpanMs: number): Promise<void> {
    this.folds += 1;
    this.folding = this.#foldAll(knownSpanMs).catch((error: unknown) => this.#failed(error));
    await this.folding;
    this.folding = undefined;
  }

  /** @param knownSpanMs a server in which nothing happens writes that once in this time */
  async #foldAll(knownSpanMs: number): Promise<void> {
    const { store, clock } = this.#parts;
    const endMs = floorTo(clock.now(), TEN_SECONDS_MS);
    // The clock may have been set back.
    this.#knownMs = Math.min(this.#knownMs, endMs);
    const toMs = floorTo(endMs, knownSpanMs);
    const fromMs = Math.max(this.#knownMs, toMs - MAX_EMPTY_MS);
    let isMore = await store.fold(endMs, fromMs < toMs ? { fromMs, toMs } : undefined);
    this.#knownMs = Math.max(this.#knownMs, toMs);
    while (isMore && !this.#isStopped) isMore = await store.fold(endMs);
  }

  #failed(error: unknown): void {
    this.#parts.logger.debug(
      { error: messageOf(error) },
      "Figures could not be stored; they are with the next ones.",
    );
  }
}
