import { EvregError } from "../domain/error.ts";
import type { Health } from "../domain/operations.ts";
import type { Subscription } from "../domain/subscription.ts";
import type { Claim, RecordClaim } from "../store/queue.ts";
import { type EngineDependencies, EngineRun } from "./engine-run.ts";
import type { HandlerTestRequest, HandlerTestResult } from "./handler-tests.ts";
import type { PullDesk } from "./pull-desk.ts";

/** Delivers what is due for as long as it runs. */
export class Engine {
  readonly #dependencies: EngineDependencies;
  #run: EngineRun | undefined;
  /** Starts and stops happen one after the other, in the order of the calls. */
  #last: Promise<void> = Promise.resolve();

  constructor(dependencies: EngineDependencies) {
    this.#dependencies = dependencies;
  }

  state(): Health["engine"] {
    return this.#run?.state ?? "stopped";
  }

  /** Resolves when it runs; a second start changes nothing. */
  start(): Promise<void> {
    return this.#inOrder(async () => {
      if (this.#run !== undefined) return;
      this.#run = new EngineRun(this.#dependencies);
      this.#run.start();
    });
  }

  /**
   * Takes on nothing new, waits up to `deadlineMs` for attempts in flight, then aborts them and returns their deliveries.
   * Resolves when nothing is in flight any more and all results are stored. Calling again is safe and can only shorten the
   * wait.
   */
  stop(deadlineMs: number): Promise<void> {
    // What runs begins to stop now, or has its wait shortened now; only the end is awaited in order.
    void this.#run?.stop(deadlineMs);
    return this.#inOrder(async () => {
      await this.#run?.stop(deadlineMs);
      this.#run = undefined;
    });
  }

  /**
   * Claims once, and resolves when those attempts have ended and are stored; for tests and for commands that act on a
   * data folder by themselves. Rejects with the store's error. Does nothing while the engine runs.
   */
  runOnce(): Promise<void> {
    return this.#inOrder(async () => {
      if (this.#run !== undefined) return;
      const run = new EngineRun(this.#dependencies);
      try {
        await run.once();
      } finally {
        await run.stop(0);
      }
    });
  }

  /**
   * Signals that something may be due now. Cheap; does nothing unless it runs.
   * @param changed a subscription as it is after a change: no attempt starts any more by what it was before
   */
  wake(changed?: Subscription): void {
    this.#run?.wake(changed);
  }

  /**
   * What an event of the action that is being recorded may lease at once; `undefined` for nothing. To be followed by
   * `recorded`.
   */
  claimOf(action: string): RecordClaim | undefined {
    return this.#run?.claimOf(action);
  }

  /** @param claims what was leased; none if the event was refused */
  recorded(claim: RecordClaim, claims: readonly Claim[]): void {
    // A run ends only once all that it lets others lease has come.
    this.#run?.recorded(claim, claims);
  }

  /** Sends one signed request outside the queue. `unavailable` unless it runs, `rate_limited` while many are under way. */
  async test(request: HandlerTestRequest): Promise<HandlerTestResult> {
    if (this.#run === undefined) throw new EvregError("unavailable", "The delivery engine is stopped.");
    return this.#run.tests.send(request);
  }

  /** A subscription was deleted: no attempt of it starts, and no consumer waits for it any more. */
  deleted(subscription: Subscription): void {
    this.#run?.wake(subscription);
    this.#run?.pulls.deleted(subscription.rowid);
  }

  /** For consumers of pull subscriptions. @throws EvregError `unavailable` while it does not run */
  get pulls(): PullDesk {
    if (this.#run !== undefined) return this.#run.pulls;
    throw new EvregError("unavailable", "Nothing is given to consumers: the delivery engine is stopped.");
  }

  #inOrder(step: () => Promise<void>): Promise<void> {
    const done = this.#last.then(step);
    this.#last = done.catch(() => {});
    return done;
  }
}
