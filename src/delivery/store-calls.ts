import { messageOf } from "../domain/error.ts";
import { Backoff, type Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";

interface StoreRetryDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Logged at the first failure. */
  readonly failing: string;
  /** Logged at the first success after it. */
  readonly recovered?: string;
}

/** When a kind of call to the store is made again after a failure. Calls that fail side by side share one growing wait. */
export class StoreRetry {
  readonly #dependencies: StoreRetryDependencies;
  readonly #backoff: Backoff;
  #failingSinceMs: number | undefined;
  #waiting: Promise<void> | undefined;

  constructor(dependencies: StoreRetryDependencies) {
    this.#dependencies = dependencies;
    this.#backoff = new Backoff(dependencies.clock);
  }

  /** For how long calls have failed. */
  get failingMs(): number {
    return this.#failingSinceMs === undefined ? 0 : this.#dependencies.clock.now() - this.#failingSinceMs;
  }

  /** Resolves when the next call may be made; `undefined` for now. */
  get waiting(): Promise<void> | undefined {
    return this.#waiting;
  }

  succeeded(): void {
    if (this.#failingSinceMs === undefined) return;
    const { logger, recovered } = this.#dependencies;
    if (recovered !== undefined) logger.info({}, recovered);
    this.#failingSinceMs = undefined;
    this.#backoff.reset();
  }

  /** Resolves when the call may be made again, or once the signal is aborted. */
  failed(error: unknown, signal: AbortSignal): Promise<void> {
    const { clock, logger, failing } = this.#dependencies;
    if (this.#failingSinceMs === undefined) {
      logger.warn({ error: messageOf(error) }, failing);
      this.#failingSinceMs = clock.now();
    }
    return (this.#waiting ??= this.#wait(signal));
  }

  async #wait(signal: AbortSignal): Promise<void> {
    await this.#backoff.wait(signal);
    this.#waiting = undefined;
  }
}
