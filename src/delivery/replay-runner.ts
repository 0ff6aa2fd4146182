import { Backoff, type Clock, sleep } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import {
  type ReplayPlan,
  type ReplayProgress,
  type ReplayStore,
  type RunningReplay,
} from "../store/replays.ts";

/**
 * A replay tops its subscription up to so many due deliveries, those under way and live ones included: it never takes all
 * of what a handler that answers slowly may have under way.
 */
const MOST_DUE = 50;
/** So many at a time, which are begun at once: a live one waits for them. With 50 it took three times as long. */
const MOST_AT_ONCE = 8;
/** It waits while the handler has left so many unfinished: a dead one is not sent the whole past at once. */
const MOST_UNFINISHED = 1_000;
/** A step of any replay is begun this long after the end of the last one, so that publishing has the store between them. */
const REST_MS = 4;
/** After a step that made deliveries due: a quick handler has taken them. */
const TOP_UP_MS = 6;
const LONGEST_CROWDED_MS = 320;
/** Reactivating wakes it earlier. */
const PAUSED_MS = 5_000;

export interface ReplayRunnerParts {
  readonly store: Pick<ReplayStore, "running" | "count" | "advance">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Tells the engine that so many more are due. */
  readonly wake: (queued: number) => void;
}

/**
 * Carries on all replays that run, side by side: each in steps of its own size, the steps of all one after the other. How
 * far each has come is the store's to know, so a crash costs nothing but time.
 */
export class ReplayRunner {
  readonly #parts: ReplayRunnerParts;
  /** Ends all waits: at a wake and at the stop. */
  #waits = new AbortController();
  readonly #backoff: Backoff;
  /** What is carried on now, by rowid. */
  readonly #carried = new Map<number, Promise<void>>();
  #looking: Promise<void> | undefined;
  #looksAgain = false;
  /** Resolves when the next step may be made. */
  #turn: Promise<void> = Promise.resolve();
  #isRunning = false;
  #stopping = new AbortController();

  constructor(parts: ReplayRunnerParts) {
    this.#parts = parts;
    this.#backoff = new Backoff(parts.clock);
  }

  start(): void {
    this.#isRunning = true;
    this.#stopping = new AbortController();
    this.wake();
  }

  /** Tells that a replay was begun, or that one may go on. */
  wake(): void {
    if (!this.#isRunning) return;
    this.#endWaits();
    if (this.#looking === undefined) this.#looking = this.#look();
    else this.#looksAgain = true;
  }

  /** Resolves when no step is under way any more. Safe to call twice. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#stopping.abort();
    this.#endWaits();
    await this.#looking;
    await Promise.all(this.#carried.values());
  }

  #endWaits(): void {
    this.#waits.abort();
    this.#waits = new AbortController();
  }

  async #look(): Promise<void> {
    do {
      this.#looksAgain = false;
      const running = await this.#tried(this.#backoff, () => this.#parts.store.running());
      for (const replay of running ?? []) {
        const { rowid } = replay;
        if (this.#carried.has(rowid)) continue;
        this.#carried.set(
          rowid,
          this.#carry(replay).finally(() => this.#carried.delete(rowid)),
        );
      }
    } while (this.#looksAgain && this.#isRunning);
    this.#looking = undefined;
  }

  async #carry({ rowid, plan, total: known }: RunningReplay): Promise<void> {
    const { store, clock, logger, wake } = this.#parts;
    const backoff = new Backoff(this.#parts.clock);
    let total = known ?? (await this.#count(plan, backoff));
    let waitMs = TOP_UP_MS;
    while (this.#isRunning) {
      const noted = total === undefined || total === known ? {} : { total };
      const step = (): Promise<ReplayProgress> =>
        store.advance(rowid, {
          nowMs: clock.now(),
          most: MOST_AT_ONCE,
          mostDue: MOST_DUE,
          mostUnfinished: MOST_UNFINISHED,
          ...noted,
        });
      const progress = await this.#tried(backoff, () => this.#inTurn(step));
      if (progress === undefined) return;
      total = undefined;
      if (progress.queued > 0) wake(progress.queued);
      if (progress.state === "ended") {
        logger.info({ replay: rowid, subscription: plan.subscription }, "A replay has ended.");
        return;
      }
      if (progress.state === "crowded") waitMs = Math.min(waitMs * 2, LONGEST_CROWDED_MS);
      else waitMs = TOP_UP_MS;
      if (progress.state === "paused") await this.#rest(PAUSED_MS);
      else if (progress.state === "crowded" || progress.queued > 0) await this.#rest(waitMs);
    }
  }

  /** `undefined` when it was stopped first. */
  #count(plan: ReplayPlan, backoff: Backoff): Promise<number | undefined> {
    return this.#tried(backoff, () => this.#parts.store.count(plan, this.#stopping.signal));
  }

  /** What the store answers, asked again for as long as it cannot; `undefined` when it was stopped first. */
  async #tried<T>(backoff: Backoff, ask: () => Promise<T>): Promise<T | undefined> {
    while (this.#isRunning) {
      try {
        const answer = await ask();
        backoff.reset();
        return answer;
      } catch (error) {
        if (!this.#isRunning) break;
        if (!backoff.isFailing) {
          this.#parts.logger.warn({ error: String(error) }, "A replay cannot go on now; it is tried again.");
        }
        await backoff.wait(this.#waits.signal);
      }
    }
    return undefined;
  }

  /** One step after the other, in the order of asking: thus none of two replays gets ahead of the other. */
  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const made = this.#turn.then(step);
    this.#turn = made.then(
      () => this.#rest(REST_MS),
      () => this.#rest(REST_MS),
    );
    return made;
  }

  #rest(delayMs: number): Promise<void> {
    return this.#isRunning ? sleep(this.#parts.clock, delayMs, this.#waits.signal) : Promise.resolve();
  }
}
