import { EvregError } from "../domain/error.ts";
import { type Clock, sleep } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";

interface RoundsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long to wait before a round; the first one has the number 0. */
  readonly waitMs: (round: number) => number;
  /** Does one round. It ends early once the signal is aborted. */
  readonly work: (stopping: AbortSignal) => Promise<void>;
  /** The line of the log for a round that failed. */
  readonly failed: string;
}

/** Does something again and again. */
export class Rounds {
  readonly #options: RoundsOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: RoundsOptions) {
    this.#options = options;
  }

  /** A second start changes nothing. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when the running round has ended. Safe to call twice. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, logger, waitMs, work, failed } = this.#options;
    const { signal } = this.#stopping;
    for (let round = 0; !signal.aborted; round += 1) {
      const delayMs = waitMs(round);
      if (delayMs > 0) await sleep(clock, delayMs, signal);
      if (signal.aborted) return;
      try {
        await work(signal);
      } catch (error) {
        // The store has said why in the log, and says when it takes writes again.
        if (error instanceof EvregError && error.code === "unavailable") continue;
        logger.error({ err: error }, failed);
      }
    }
  }
}
