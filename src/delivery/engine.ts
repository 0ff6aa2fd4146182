import type { Health } from "../domain/health.ts";
import type { Subscription } from "../domain/subscription.ts";
import { Run, type RunParts } from "./run.ts";

/** Delivers what is due for as long as it runs. */
export interface Engine {
  /** Resolves when it runs; a second start changes nothing. */
  start(): Promise<void>;
  /**
   * Takes on nothing new, waits up to `graceMs` for attempts under way, then cuts them short and hands their deliveries
   * back. Resolves when nothing is under way any more and what ended is stored. Calling again is safe and can only
   * shorten the grace.
   */
  stop(graceMs: number): Promise<void>;
  /**
   * Claims once, and resolves when those attempts have ended and are stored; for tests and for commands that act on a
   * data folder by themselves. Rejects with the store's error. While the engine runs this is left to it.
   */
  runOnce(): Promise<void>;
  /**
   * Tells that something may be due now. Cheap; does nothing unless it runs.
   * @param changed a subscription as it is after a change: no attempt begins any more by what it was before
   */
  wake(changed?: Subscription): void;
  state(): Health["engine"];
}

export type EngineParts = RunParts;

export function createEngine(parts: EngineParts): Engine {
  let current: Run | undefined;
  // Starting and stopping happen one after the other, in the order they were asked for.
  let last: Promise<void> = Promise.resolve();
  const inTurn = (step: () => Promise<void>): Promise<void> => {
    const turn = last.then(step);
    last = turn.catch(() => {});
    return turn;
  };

  return {
    start: () =>
      inTurn(async () => {
        if (current !== undefined) return;
        current = new Run(parts);
        current.begin();
      }),
    stop(graceMs) {
      // What runs begins to stop now, or hears of a shorter grace now; only the waiting is in turn.
      void current?.stop(graceMs);
      return inTurn(async () => {
        await current?.stop(graceMs);
        current = undefined;
      });
    },
    runOnce: () =>
      inTurn(async () => {
        if (current !== undefined) return;
        const run = new Run(parts);
        try {
          await run.once();
        } finally {
          await run.stop(0);
        }
      }),
    wake: (changed) => current?.look(changed),
    state: () =>
      current === undefined || current.isStopping ? "stopped" : current.isFailing ? "failing" : "running",
  };
}
