import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { Store } from "../store/store.ts";

export interface LeaseWatchParts {
  readonly store: Pick<Store, "releaseExpired">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly everyMs: number;
  /** While results wait long to be stored, leases that seem to have ended may be their own, and are let be. */
  readonly isHolding: () => boolean;
  /** Called after each round, with the number of deliveries that are due again. */
  readonly onRound: (released: number) => void;
}

/**
 * Makes deliveries due again whose lease ended: whoever sent them has died or lost touch. The one thing the engine asks
 * for at a steady pace, as nothing announces it.
 */
export class LeaseWatch {
  readonly #parts: LeaseWatchParts;
  #cancel: () => void = () => {};
  #isStopped = false;

  constructor(parts: LeaseWatchParts) {
    this.#parts = parts;
  }

  /** Looks at once, then every `everyMs`. */
  start(): void {
    void this.#round();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  async #round(): Promise<void> {
    const { store, clock, logger, everyMs, isHolding, onRound } = this.#parts;
    try {
      const released = isHolding() ? 0 : await store.releaseExpired(clock.now());
      if (released > 0) {
        logger.warn({ deliveries: released }, "Deliveries whose attempt never ended are due again.");
      }
      onRound(released);
    } catch {
      // The claim that fails for the same reason says so.
    }
    if (!this.#isStopped) this.#cancel = clock.setTimer(() => void this.#round(), everyMs);
  }
}
