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

/** When a replay may take its next step, and how long it waited for that. */
interface ReplayWait {
  readonly waitMs: number;
  readonly untilMs: number;
}

/** Runs all replays, one step of each by turns. The store knows how far each has come, so a crash costs only time. */
export class ReplayRunner {
  readonly #parts: ReplayParts;
  readonly #listing: StoreRetry;
  readonly #steps: StoreRetry;
  readonly #stopped = new AbortController();
  /** Ends all waits. */
  #woken = new AbortController();
  #run: Promise<void> | undefined;

  constructor(parts: ReplayParts) {
    this.#parts = parts;
    this.#listing = new StoreRetry(parts, "Replays cannot be listed; trying again.");
    this.#steps = new StoreRetry(parts, "A replay cannot go on now; it is tried again.");
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
  }

  async #runAll(stopped: AbortSignal): Promise<void> {
    const { store, clock, node } = this.#parts;
    let waits = new Map<number, ReplayWait>();
    while (!stopped.aborted) {
      const before = this.#woken.signal.aborted ? new Map<number, ReplayWait>() : waits;
      this.#woken = new AbortController();
      waits = new Map();
      const running = await this.#listing.untilAnswered(() => store.running(), stopped);
      for (const replay of running ?? []) {
        if (stopped.aborted || !node.owns(replay.plan.subscription)) continue;
        const { waitMs = 0, untilMs = 0 } = before.get(replay.rowid) ?? {};
        if (untilMs > clock.monotonicMs()) waits.set(replay.rowid, { waitMs, untilMs });
        else {
          const progress = await this.#steps.once(() => this.#step(replay, stopped), stopped);
          const nextMs = waitAfter(progress, waitMs);
          waits.set(replay.rowid, { waitMs: nextMs, untilMs: clock.monotonicMs() + nextMs });
          await sleep(clock, STEP_PAUSE_MS, stopped);
        }
      }
      const untilMs = Math.min(...Array.from(waits.values(), (wait) => wait.untilMs));
      await sleep(clock, untilMs - clock.monotonicMs(), this.#woken.signal);
    }
  }

  async #step({ rowid, plan, total }: RunningReplay, stopped: AbortSignal): Promise<ReplayProgress> {
    const { store, clock, logger, wake } = this.#parts;
    const counted = total === null ? { total: await store.count(plan, stopped) } : {};
    const progress = await store.advance(rowid, {
      nowMs: clock.now(),
      maxQueued: MAX_PER_STEP,
      maxDue: MAX_DUE,
      maxUnfinished: MAX_UNFINISHED,
      ...counted,
    });
    if (progress.queued > 0) wake(progress.queued);
    if (progress.state === "ended") {
      logger.info({ replay: rowid, subscription: plan.subscription }, "A replay has ended.");
    }
    return progress;
  }
}

/** @param beforeMs how long it waited before the step */
function waitAfter(progress: ReplayProgress | undefined, beforeMs: number): number {
  if (progress?.state === "paused") return PAUSED_MS;
  if (progress?.state === "saturated") return Math.min(Math.max(TOP_UP_MS, beforeMs) * 2, MAX_SATURATED_MS);
  return progress !== undefined && progress.queued > 0 ? TOP_UP_MS : 0;
}
