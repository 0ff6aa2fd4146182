import { type Clock, sleep } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import {
  type ReplayPlan,
  type ReplayProgress,
  type ReplayStore,
  type RunningReplay,
} from "../store/replays.ts";
import { StoreRetry } from "./store-calls.ts";

/**
 * A replay fills its subscription up to so many due deliveries, those in flight and live ones included: it never takes all
 * the attempts that a slow handler may have in flight.
 */
const MAX_DUE = 50;
/** So many in a step, which are started at once: a live one waits for them. With 50 it took three times as long. */
const MAX_PER_STEP = 8;
/** It waits while so many are unfinished: a dead handler does not get the whole past at once. */
const MAX_UNFINISHED = 1_000;
/** So long after the end of a step the next one of any replay starts, so that publishing has the store between them. */
const STEP_PAUSE_MS = 4;
/** After a step that made deliveries due: a fast handler has taken them. */
const TOP_UP_MS = 6;
const MAX_SATURATED_MS = 320;
/** Reactivating wakes it sooner. */
const PAUSED_MS = 5_000;

export interface ReplayRunnerDependencies {
  readonly store: Pick<ReplayStore, "running" | "count" | "advance">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Signals to the engine that so many more are due. */
  readonly wake: (queued: number) => void;
}

/**
 * Runs all replays side by side, step by step, the steps of all one after the other. The store knows how far each has
 * come, so a crash costs nothing but time.
 */
export class ReplayRunner {
  readonly #dependencies: ReplayRunnerDependencies;
  /** Ends all waits: at a wake and at the stop. */
  #waits = new AbortController();
  /** Those that run now, by rowid. */
  readonly #running = new Map<number, Promise<void>>();
  #listing: Promise<void> | undefined;
  #listsAgain = false;
  /** Resolves when the next step may be made. */
  #lastStep: Promise<void> = Promise.resolve();
  #isRunning = false;
  #stopping = new AbortController();

  constructor(dependencies: ReplayRunnerDependencies) {
    this.#dependencies = dependencies;
  }

  start(): void {
    this.#isRunning = true;
    this.#stopping = new AbortController();
    this.wake();
  }

  /** Signals that a replay was started, or that one may go on. */
  wake(): void {
    if (!this.#isRunning) return;
    this.#endWaits();
    if (this.#listing === undefined) this.#listing = this.#list();
    else this.#listsAgain = true;
  }

  /** Resolves when no step is under way any more. Safe to call twice. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#stopping.abort();
    this.#endWaits();
    await this.#listing;
    await Promise.all(this.#running.values());
  }

  #endWaits(): void {
    this.#waits.abort();
    if (this.#isRunning) this.#waits = new AbortController();
  }

  async #list(): Promise<void> {
    const retry = this.#retry();
    do {
      this.#listsAgain = false;
      const running = await this.#untilAnswered(retry, () => this.#dependencies.store.running());
      for (const replay of running ?? []) {
        const { rowid } = replay;
        if (this.#running.has(rowid)) continue;
        this.#running.set(
          rowid,
          this.#run(replay).finally(() => this.#running.delete(rowid)),
        );
      }
    } while (this.#listsAgain && this.#isRunning);
    this.#listing = undefined;
  }

  async #run({ rowid, plan, total: known }: RunningReplay): Promise<void> {
    const { store, clock, logger, wake } = this.#dependencies;
    const retry = this.#retry();
    let total = known ?? (await this.#count(plan, retry));
    let waitMs = TOP_UP_MS;
    while (this.#isRunning) {
      const counted = total === undefined || total === known ? {} : { total };
      const step = (): Promise<ReplayProgress> =>
        store.advance(rowid, {
          nowMs: clock.now(),
          maxQueued: MAX_PER_STEP,
          maxDue: MAX_DUE,
          maxUnfinished: MAX_UNFINISHED,
          ...counted,
        });
      const progress = await this.#untilAnswered(retry, () => this.#afterLastStep(step));
      if (progress === undefined) return;
      total = undefined;
      if (progress.queued > 0) wake(progress.queued);
      if (progress.state === "ended") {
        logger.info({ replay: rowid, subscription: plan.subscription }, "A replay has ended.");
        return;
      }
      waitMs = progress.state === "saturated" ? Math.min(waitMs * 2, MAX_SATURATED_MS) : TOP_UP_MS;
      if (progress.state === "paused") await this.#sleep(PAUSED_MS);
      else if (progress.state === "saturated" || progress.queued > 0) await this.#sleep(waitMs);
    }
  }

  /** `undefined` when it was stopped first. */
  #count(plan: ReplayPlan, retry: StoreRetry): Promise<number | undefined> {
    return this.#untilAnswered(retry, () => this.#dependencies.store.count(plan, this.#stopping.signal));
  }

  #retry(): StoreRetry {
    return new StoreRetry(this.#dependencies, "A replay cannot go on now; it is tried again.");
  }

  /** What the store answers, called again for as long as it fails; `undefined` when it was stopped first. */
  async #untilAnswered<T>(retry: StoreRetry, call: () => Promise<T>): Promise<T | undefined> {
    while (this.#isRunning) {
      try {
        const answer = await call();
        retry.succeeded();
        return answer;
      } catch (error) {
        if (this.#isRunning) await retry.failed(error, this.#waits.signal);
      }
    }
    return undefined;
  }

  /** One step after the other, in the order of the calls: so none of two replays gets ahead of the other. */
  #afterLastStep<T>(step: () => Promise<T>): Promise<T> {
    const made = this.#lastStep.then(step);
    const pause = (): Promise<void> => this.#sleep(STEP_PAUSE_MS);
    this.#lastStep = made.then(pause, pause);
    return made;
  }

  #sleep(delayMs: number): Promise<void> {
    return sleep(this.#dependencies.clock, delayMs, this.#waits.signal);
  }
}
