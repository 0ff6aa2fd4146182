import type { Logger } from "../runtime/logger.ts";

const MOST_KEPT = 1_000;

/** The events whose payloads were found damaged: each is told of once, however often it is asked for. */
export class DamagedEvents {
  readonly #logger: Logger;
  readonly #events = new Set<number>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  get events(): readonly number[] {
    return [...this.#events];
  }

  note(event: number): void {
    if (this.#events.has(event) || this.#events.size >= MOST_KEPT) return;
    this.#events.add(event);
    this.#logger.error(
      { event },
      "The payload of an event is damaged in the data file: it is not shown and not sent. evreg doctor --deep tells of all; restore a backup from before the damage.",
    );
  }
}
