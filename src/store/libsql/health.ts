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

/**
 * Logs when the log cannot be moved into the data file any more, and when it can again.
 * @param next is given each commit as well
 */
export function checkpointLog(logger: Logger, next: CommitObserver | undefined): CommitObserver {
  let failure: string | undefined;
  return {
    committed(commit) {
      next?.committed(commit);
      const previous = failure;
      failure = commit.checkpointFailure;
      if (previous === undefined && failure !== undefined) {
        logger.warn(
          { reason: failure },
          "The log cannot be moved into the data file: nothing that is acknowledged is lost, but the log grows until the disk is full. Look after the disk, then start evreg again.",
        );
      } else if (previous !== undefined && failure === undefined) {
        logger.info({}, "The log was moved into the data file again.");
      }
    },
  };
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
