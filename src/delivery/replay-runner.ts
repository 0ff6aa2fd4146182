import { sleep } from "../runtime/clock.ts";
import type { ReplayProgress, ReplayStore, RunningReplay } from "../store/history.ts";
import type { StoreNode } from "../store/store.ts";
import type { EngineParts } from "./parts.ts";
import { StoreRetry } from "./store-calls.ts";

/**
 * A replay stops at so many due deliveries of its subscription, those in flight and live ones included: it never takes all
 * the attempts that a slow handler may have in flight.
 */
const MAX_DUE = 50;
/** A step's deliveries are started at once, and a live one waits for them: with 50 three times as long. */
const MAX_PER_STEP = 8;
/** It waits while so many are unfinished: a dead handler does not get the whole past at once. */
const MAX_UNFINISHED = 1_000;
/** The pause after a step of any replay, so that publishing has the store meanwhile. */
const STEP_PAUSE_MS = 4;
/** The pause after a step that made deliveries due: a fast handler has taken them by then. */
const TOP_UP_MS = 6;
const MAX_SATURATED_MS = 320;
/** Reactivating the subscription ends the wait. */
const PAUSED_MS = 5_000;

interface ReplayParts extends Pick<EngineParts, "clock" | "logger"> {
  readonly store: Pick<ReplayStore, "running" | "count" | "advance">;
  /** Others run the replays of subscriptions that are theirs. */
  readonly node: Pick<StoreNode, "owns">;
  /** Signals to the engine that so many more are due. */
  readonly wake: (queued: number) => void;
}

/** Runs all replays side by side, one step at a time. The store knows how far each has come, so a crash costs only time. */
export class ReplayRunner {
  readonly #parts: ReplayParts;
  /** Ends all waits: at a wake and at the stop. */
  #waits = new AbortController();
  /** The replays that run now, by rowid. */
  readonly #running = new Map<number, Promise<void>>();
  #listing: Promise<void> | undefined;
  #listsAgain = false;
  /** Resolves when the next step may be made. */
  #lastStep: Promise<void> = Promise.resolve();
  /** `undefined` before a start and after the stop. */
  #run: AbortController | undefined;

  constructor(parts: ReplayParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#run = new AbortController();
    this.wake();
  }

  /** Signals that a replay was started, or that one may go on. */
  wake(): void {
    if (this.#run === undefined) return;
    this.#waits.abort();
    this.#waits = new AbortController();
    if (this.#listing === undefined) this.#listing = this.#list(this.#run.signal);
    else this.#listsAgain = true;
  }

  /** Resolves when no step is under way any more. Safe to call twice. */
  async stop(): Promise<void> {
    this.#run?.abort();
    this.#run = undefined;
    this.#waits.abort();
    await this.#listing;
    await Promise.all(this.#running.values());
  }

  async #list(stopped: AbortSignal): Promise<void> {
    const { store } = this.#parts;
    const retry = this.#retry();
    do {
      this.#listsAgain = false;
      const replays = await retry.untilAnswered(() => store.running(), stopped);
      for (const replay of replays ?? []) {
        const { rowid } = replay;
        if (this.#running.has(rowid) || !this.#parts.node.owns(replay.plan.subscription)) continue;
        this.#running.set(
          rowid,
          this.#replay(replay, stopped).finally(() => this.#running.delete(rowid)),
        );
      }
    } while (this.#listsAgain && !stopped.aborted);
    this.#listing = undefined;
  }

  async #replay({ rowid, plan, total: known }: RunningReplay, stopped: AbortSignal): Promise<void> {
    const { store, clock, logger, wake } = this.#parts;
    const retry = this.#retry();
    let total = known ?? (await retry.untilAnswered(() => store.count(plan, stopped), stopped));
    let waitMs = TOP_UP_MS;
    while (!stopped.aborted && this.#parts.node.owns(plan.subscription)) {
      const counted = total === undefined || total === known ? {} : { total };
      const step = (): Promise<ReplayProgress> =>
        store.advance(rowid, {
          nowMs: clock.now(),
          maxQueued: MAX_PER_STEP,
          maxDue: MAX_DUE,
          maxUnfinished: MAX_UNFINISHED,
          ...counted,
        });
      const progress = await retry.untilAnswered(() => this.#afterLastStep(step), stopped);
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

  #retry(): StoreRetry {
    return new StoreRetry(this.#parts, "A replay cannot go on now; it is tried again.");
  }

  /** Makes one step after the other, in the order of the calls, so that no replay gets ahead of another. */
  #afterLastStep<T>(step: () => Promise<T>): Promise<T> {
    const made = this.#lastStep.then(step);
    const pause = (): Promise<void> => this.#sleep(STEP_PAUSE_MS);
    this.#lastStep = made.then(pause, pause);
    return made;
  }

  #sleep(delayMs: number): Promise<void> {
    return sleep(this.#parts.clock, delayMs, this.#waits.signal);
  }
}
