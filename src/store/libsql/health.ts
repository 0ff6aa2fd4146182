import type { Logger } from "../../runtime/logger.ts";

/** Measures of one transaction. */
export interface CommitReport {
  /** How many writes share the transaction. */
  readonly writes: number;
  /** How long it took from the start of the transaction until it was durable. */
  readonly tookMs: number;
  /** How long making the transaction durable took. */
  readonly commitMs: number;
  /** How often the commit waited for the disk; 0 where a later one makes it durable. */
  readonly fsyncs: number;
  /** Why the log cannot be moved into the data file, so that it grows. */
  readonly checkpointFailure: string | undefined;
}

export interface CommitObserver {
  committed(commit: CommitReport): void;
}

/** Logs when the log cannot be moved into the data file any more, and when it can again. */
export class CheckpointLog implements CommitObserver {
  readonly #logger: Logger;
  readonly #next: CommitObserver | undefined;
  #failure: string | undefined;

  /** @param next is given each commit as well */
  constructor(logger: Logger, next: CommitObserver | undefined) {
    this.#logger = logger;
    this.#next = next;
  }

  committed(commit: CommitReport): void {
    this.#next?.committed(commit);
    const { checkpointFailure: reason } = commit;
    const previous = this.#failure;
    this.#failure = reason;
    if (previous === undefined && reason !== undefined) {
      this.#logger.warn(
        { reason },
        "The log cannot be moved into the data file: nothing that is acknowledged is lost, but the log grows until the disk is full. Look after the disk, then start evreg again.",
      );
    } else if (previous !== undefined && reason === undefined) {
      this.#logger.info({}, "The log was moved into the data file again.");
    }
  }
}

const MAX_EVENTS = 1_000;

/** The events that were found damaged. Each is logged once. */
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
    if (this.#events.has(event) || this.#events.size >= MAX_EVENTS) return;
    this.#events.add(event);
    this.#logger.error(
      { event },
      "The payload of an event is damaged in the data file: it is not shown and not sent. evreg doctor --deep tells of all; restore a backup from before the damage.",
    );
  }
}
