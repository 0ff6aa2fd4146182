import type { ClockStep } from "../runtime/clock.ts";
import type { DeliveryQueue } from "../store/queue.ts";
import type { StoreNode } from "../store/store.ts";
import type { EngineParts } from "./parts.ts";
import { StoreRetry } from "./store-calls.ts";

interface ClockStepParts extends Pick<EngineParts, "clock" | "logger"> {
  readonly store: Pick<DeliveryQueue, "moveWaits">;
  /** Where several share a clock, one of them moves what waits. */
  readonly node: Pick<StoreNode, "hasDuties">;
  /** Called when something may be due by the new time. */
  readonly wake: () => void;
}

/**
 * What waits for a time that is stored waits by the clock. Where that was set back, the stored times are moved with it; where it
 * was set forward, they are due.
 */
export class ClockSteps {
  readonly #parts: ClockStepParts;
  readonly #retry: StoreRetry;
  readonly #stopping = new AbortController();

  constructor(parts: ClockStepParts) {
    this.#parts = parts;
    this.#retry = new StoreRetry(parts, "Waits cannot be moved with the clock; trying again.");
  }

  /** `WatchedClock` calls it at once, so that what is stored by the new time is stored behind what moves. */
  readonly noticed = (step: ClockStep): void => {
    if (step.byMs < 0 && this.#parts.node.hasDuties()) void this.#move(step);
    // Whoever read the clock is in the midst of something.
    else queueMicrotask(this.#parts.wake);
  };

  /** What is not moved by now is moved at the next start. */
  stop(): void {
    this.#stopping.abort();
  }

  async #move({ byMs, nowMs }: ClockStep): Promise<void> {
    const { store, logger, wake } = this.#parts;
    const { signal } = this.#stopping;
    const waits = await this.#retry.untilAnswered(() => store.moveWaits(-byMs, nowMs), signal);
    if (waits === undefined) return;
    logger.warn({ backMs: -byMs, waits }, "The clock was set back, and what waits was moved with it.");
    wake();
  }
}
