import type { Replay } from "../domain/replay.ts";
import { sleep } from "../runtime/clock.ts";
import type { ReplayProgress, ReplayStore } from "../store/history.ts";
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
  readonly store: Pick<ReplayStore, "list" | "count" | "advance">;
  /** Others run the replays of subscriptions that are theirs. */
  readonly node: Pick<StoreNode, "owns">;
  /** Signals to the engine that so many more are due. */
  readonly wake: (queued: number) => void;
}

/**
 * Runs all replays side by side, one step at a time: a long count, or one that fails, holds up no other. The store knows how far each
 * has come, so a crash costs only time.
 */
export class ReplayRunner {
  readonly #parts: ReplayParts;
  readonly #stopped = new AbortController();
  /** Ends all waits. */
  #woken = new AbortController();
  /** The replays that run now, by rowid. */
  readonly #running = new Map<number, Promise<void>>();
  /** Resolves when the next step may be made. */
  #lastStep: Promise<void> = Promise.resolve();
  #run: Promise<void> | undefined;

  constructor(parts: ReplayParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#run = this.#runAll(this.#stopped.signal);
  }

  /** Signals that a replay was started, or that one may go on. */
  wake(): void {
    this.#woken.abort();
  }

  /** Resolves when no step is under way any more. Safe to call twice. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.wake();
    await this.#run;
    await Promise.all(this.#running.values());
  }

  async #runAll(stopped: AbortSignal): Promise<void> {
    const { store, clock, node } = this.#parts;
    const listing = new StoreRetry(this.#parts, "Replays cannot be listed; trying again.");
    while (!stopped.aborted) {
      this.#woken = new AbortController();
      for (const one of (await listing.untilAnswered(() => store.list({ status: "running" }), stopped)) ??
        []) {
        if (this.#running.has(one.rowid) || !node.owns(one.subscription_id)) continue;
        const ended = this.#replay(one, stopped).finally(() => this.#running.delete(one.rowid));
        this.#running.set(one.rowid, ended);
      }
      await sleep(clock, Infinity, this.#woken.signal);
    }
  }

  async #replay({ rowid, subscription_id: id, total: known }: Replay, stopped: AbortSignal): Promise<void> {
    const { store, clock, node, logger, wake } = this.#parts;
    const retry = new StoreRetry(this.#parts, "A replay cannot go on now; it is tried again.");
    const total =
      known ?? (await retry.untilAnswered(() => store.count({ replay: rowid }, stopped), stopped));
    let counted = known === null && total !== undefined ? { total } : {};
    const limits = { maxQueued: MAX_PER_STEP, maxDue: MAX_DUE, maxUnfinished: MAX_UNFINISHED };
    const step = (): Promise<ReplayProgress> =>
      store.advance(rowid, { nowMs: clock.now(), ...limits, ...counted });
    for (let waitMs = 0; !stopped.aborted && node.owns(id);) {
      const progress = await retry.once(() => this.#afterLastStep(step), stopped);
      if (progress === undefined) continue;
      counted = {};
      if (progress.queued > 0) wake(progress.queued);
      if (progress.state === "ended") {
        logger.info({ replay: rowid, subscription: id }, "A replay has ended.");
        return;
      }
      waitMs = waitAfter(progress, waitMs);
      await sleep(clock, waitMs, this.#woken.signal);
    }
  }

  /** Makes one step after the other, in the order of the calls, so that no replay gets ahead of another. */
  #afterLastStep(step: () => Promise<ReplayProgress>): Promise<ReplayProgress> {
    const made = this.#lastStep.then(step);
    const pause = (): Promise<void> => sleep(this.#parts.clock, STEP_PAUSE_MS, this.#stopped.signal);
    this.#lastStep = made.then(pause, pause);
    return made;
  }
}

/** @param beforeMs how long it waited before the step */
function waitAfter({ state, queued }: ReplayProgress, beforeMs: number): number {
  if (state === "paused") return PAUSED_MS;
  if (state === "saturated") return Math.min(Math.max(TOP_UP_MS, beforeMs) * 2, MAX_SATURATED_MS);
  return queued > 0 ? TOP_UP_MS : 0;
}
