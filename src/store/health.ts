import type { Logger } from "../runtime/logger.ts";

/** One transaction, as the one who did it measured it. */
export interface CommitReport {
  /** Calls that were done together in it. */
  readonly writes: number;
  /** From its beginning until it was durable. */
  readonly tookMs: number;
  /** The end of it: what making it durable took. */
  readonly commitMs: number;
  /** Why what was committed stays in the log, which then grows. */
  readonly checkpointFailure: string | undefined;
}

/** Logs when the log cannot be moved into the data file any more, and when it can again. */
export class CheckpointLog {
  readonly #logger: Logger;
  #failure: string | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  committed({ checkpointFailure: reason }: CommitReport): void {
    const before = this.#failure;
    this.#failure = reason;
    if (before === undefined && reason !== undefined) {
      this.#logger.warn(
        { reason },
        "The log cannot be moved into the data file: nothing that is acknowledged is lost, but the log grows until the disk is full. Look after the disk, then start evreg again.",
      );
    } else if (before !== undefined && reason === undefined) {
      this.#logger.info({}, "The log was moved into the data file again.");
    }
  }
}

const MOST_KEPT = 1_000;

/** What was found damaged: each event and subscription is told of once, however often it is asked for. */
export class DamagedEvents {
  readonly #logger: Logger;
  readonly #events = new Set<number>();
  readonly #subscriptions = new Set<number>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  get events(): readonly number[] {
    return [...this.#events];
  }

  /** Of which what is due cannot be read. */
  get subscriptions(): readonly number[] {
    return [...this.#subscriptions];
  }

  noteSubscription(subscription: number): void {
    if (this.#subscriptions.has(subscription)) return;
    this.#subscriptions.add(subscription);
    this.#logger.error(
      { subscription },
      "A subscription or a delivery of it is damaged in the data file: nothing is delivered to it. evreg doctor --deep tells what is wrong; restore a backup from before the damage.",
    );
  }

  /** What was written may be good again: it is tried with the next claim. */
  mended<T>(subscription: number, answer: T): T {
    this.#subscriptions.delete(subscription);
    return answer;
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
