import { Histogram } from "../metrics/counters.ts";
import type { Logger } from "../runtime/logger.ts";

const SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const WRITES = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500];

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

/** What committing took since the store was opened. */
export class CommitCounts {
  readonly #logger: Logger;
  readonly commitSeconds = new Histogram(SECONDS);
  readonly transactionSeconds = new Histogram(SECONDS);
  readonly writes = new Histogram(WRITES);

  #checkpointFailure: string | undefined;

  /** @param logger told when the log cannot be moved into the data file any more, and when it can again */
  constructor(logger: Logger) {
    this.#logger = logger;
  }

  get isCheckpointFailing(): boolean {
    return this.#checkpointFailure !== undefined;
  }

  note({ writes, tookMs, commitMs, checkpointFailure }: CommitReport): void {
    this.#noteCheckpoint(checkpointFailure);
    this.writes.observe(writes);
    this.transactionSeconds.observe(tookMs / 1_000);
    this.commitSeconds.observe(commitMs / 1_000);
  }

  #noteCheckpoint(reason: string | undefined): void {
    const before = this.#checkpointFailure;
    this.#checkpointFailure = reason;
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
