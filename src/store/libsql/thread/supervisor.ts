import { type ErrorDetails, EvregError, messageOf } from "../../../domain/error.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { Logger } from "../../../runtime/logger.ts";
import type { StoreCondition } from "../../store.ts";
import {
  type CommitReport,
  type Committed,
  singleWrite,
  type WireOutcome,
  type WriteBatch,
} from "./protocol.ts";
import { EngineFailure } from "./sql.ts";
import type { StoreThread, StoreThreads } from "./store-threads.ts";

export interface CommitObserver {
  committed(commit: CommitReport): void;
}

export interface SupervisorDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Starts threads on the same file, and leaves its leases. */
  readonly startThreads: () => Promise<StoreThreads>;
  readonly commits: CommitObserver | undefined;
  /** Called at most once, when the store can never commit again. */
  readonly onFatal: ((error: EvregError) => void) | undefined;
}

/** The details of a write of which certainly nothing was stored: it was refused before, or its transaction was undone. */
export const NOTHING_STORED: ErrorDetails = { stored: false };

const TRY_AGAIN_MS = 1_000;
const CHECK_EXTRA_BYTES = 64 * 1024;
const CHECK_MAX_BYTES = 8 * 1024 * 1024;

/**
 * Replaces the store's threads after a failure of the engine. Writes are refused until new ones have committed a real write,
 * which is tried about every second. A failure that leaves in doubt what is in the file ends the store for good.
 */
export class WorkerSupervisor {
  readonly #dependencies: SupervisorDependencies;
  #threads: StoreThreads | undefined;
  #status: "ok" | "recovering" | "failed" | "closed" = "ok";
  /** Why the store is not ok. */
  #failure = new EngineFailure("replace", "");
  /** The largest event that was answered as recorded; threads that do not find it are on the wrong file. */
  #lastRecorded: number;
  /**
   * How many bytes are written as a trial: more than the write that failed had, so that they do not fit into a gap which that
   * left.
   */
  #checkBytes = 0;
  /** Why the log could not be moved into the data file when it was last tried. */
  #checkpointFailure: string | undefined;
  #cancelTimer: (() => void) | undefined;
  #recovering: Promise<void> | undefined;
  /** The end of the threads of a store that has failed. */
  #ending: Promise<void> | undefined;

  constructor(dependencies: SupervisorDependencies, threads: StoreThreads) {
    this.#dependencies = dependencies;
    this.#threads = threads;
    this.#lastRecorded = threads.report.lastEvent;
  }

  condition(): StoreCondition {
    if (this.#status === "ok") return { status: "ok" };
    if (this.#status === "closed") return { status: "closed", reason: "The store is closed." };
    const next = this.#status === "failed" ? " Start evreg again." : "";
    return { status: "unavailable", reason: `Nothing can be stored: ${this.#failure.message}.${next}` };
  }

  noteRecorded(rowid: number): void {
    this.#lastRecorded = Math.max(this.#lastRecorded, rowid);
  }

  /** @throws EvregError `unavailable` while nothing can be committed, with `NOTHING_STORED` where that is certain */
  async write(batch: WriteBatch): Promise<Committed> {
    // The size is read before the message takes the buffer away.
    const size = batch.bytes?.byteLength ?? 0;
    const committed = await this.#byWriter(size, (writer) => writer.request("write", batch, batch.bytes));
    if (committed.commit !== undefined) this.#report(committed.commit);
    return committed;
  }

  /** Reports a commit, and logs when the log cannot be moved into the data file any more, and when it can again. */
  #report(commit: CommitReport): void {
    const { commits, logger } = this.#dependencies;
    commits?.committed(commit);
    const before = this.#checkpointFailure;
    const reason = (this.#checkpointFailure = commit.checkpointFailure);
    if (before === undefined && reason !== undefined) {
      logger.warn(
        { reason },
        "The log cannot be moved into the data file: nothing that is acknowledged is lost, but the log grows until the disk is full. Look after the disk, then start evreg again.",
      );
    } else if (before !== undefined && reason === undefined) {
      logger.info({}, "The log was moved into the data file again.");
    }
  }

  /** Does what needs to be between two transactions, on the connection that writes. */
  readByWriter(operation: string, args: readonly unknown[]): Promise<unknown> {
    return this.#byWriter(0, (writer) => writer.request("read", { operation, args }));
  }

  async #byWriter<T>(bytes: number, ask: (writer: StoreThread) => Promise<T>): Promise<T> {
    if (this.#status !== "ok" || this.#threads === undefined) throw this.#unavailable(NOTHING_STORED);
    try {
      return await ask(this.#threads.writer);
    } catch (error) {
      if (!(error instanceof EngineFailure)) throw error;
      this.#checkBytes = Math.min(bytes + CHECK_EXTRA_BYTES, CHECK_MAX_BYTES);
      this.#fail(error);
      throw this.#unavailable(error.kind === "full" ? NOTHING_STORED : {});
    }
  }

  /** Reads go on while the disk is full, and wait while the threads are replaced. */
  async read(operation: string, args: readonly unknown[]): Promise<unknown> {
    for (let tries = 0; tries < 3; tries += 1) {
      if (this.#threads === undefined) await this.#recovering;
      const threads = this.#threads;
      if (threads === undefined || this.#status === "closed") break;
      try {
        return await threads.reader.request("read", { operation, args });
      } catch (error) {
        if (!(error instanceof EngineFailure)) throw error;
        // Other threads were ended to be replaced; the next ones get the request.
        if (threads === this.#threads) await this.#failRead(threads, error);
        await this.#recovering;
      }
    }
    throw this.#unavailable();
  }

  /** Lets go of the file; what is under way must have ended. */
  async close(): Promise<void> {
    this.#cancelTimer?.();
    if (this.#status !== "failed") this.#status = "closed";
    await this.#recovering;
    await this.#threads?.close();
    this.#threads = undefined;
    await this.#ending;
  }

  /**
   * The thread that writes knows what was done to its files, so its failure goes before that of the one that reads. Where the
   * data file was moved, it also makes that file whole.
   */
  async #failRead(threads: StoreThreads, failure: EngineFailure): Promise<void> {
    const known = await writeCheck(threads, 0).catch((error: unknown) => error);
    this.#fail(known instanceof EngineFailure ? known : failure);
  }

  #fail(failure: EngineFailure): void {
    if (failure.kind === "fatal") return this.stop(failure.message);
    if (this.#status !== "ok") return;
    this.#status = "recovering";
    this.#failure = failure;
    this.#dependencies.logger.error({ reason: failure.message }, "The store takes no writes for now.");
    if (failure.kind === "full") this.#tryLater();
    else this.#recover();
  }

  #tryLater(): void {
    this.#cancelTimer = this.#dependencies.clock.setTimer(() => this.#recover(), TRY_AGAIN_MS);
  }

  #recover(): void {
    this.#recovering ??= this.#tryToRecover().finally(() => {
      this.#recovering = undefined;
    });
  }

  async #tryToRecover(): Promise<void> {
    try {
      // With the disk still full, the threads that there are go on answering reads.
      const isFull = this.#failure.kind === "full";
      if (this.#threads !== undefined && isFull) await writeCheck(this.#threads, this.#checkBytes);
      await this.#replace();
      if (this.#status !== "recovering") return;
      this.#status = "ok";
      this.#dependencies.logger.info({}, "The store takes writes again.");
    } catch (error) {
      if (!(error instanceof EngineFailure) || error.kind === "fatal") return this.stop(messageOf(error));
      if (this.#status !== "recovering") return;
      this.#failure = error;
      this.#tryLater();
    }
  }

  async #replace(): Promise<void> {
    const old = this.#threads;
    this.#threads = undefined;
    // The old threads give their answers first: a batch in flight may still be committed, and its callers must hear of it.
    await old?.terminate();
    if (this.#status !== "recovering") return;
    const fresh = await this.#dependencies.startThreads();
    if (this.#status !== "recovering") return fresh.terminate();
    if (fresh.report.lastEvent < this.#lastRecorded) {
      await fresh.terminate();
      const reason = `event ${this.#lastRecorded} was recorded, and the file now ends at ${fresh.report.lastEvent}`;
      throw new EngineFailure("fatal", reason);
    }
    this.#threads = fresh;
    await writeCheck(fresh, 0);
  }

  /** Gives up: what is in the file is in doubt, or the thread that owned it is gone. */
  stop(reason: string): void {
    if (this.#status === "failed" || this.#status === "closed") return;
    this.#status = "failed";
    this.#failure = new EngineFailure("fatal", reason);
    this.#cancelTimer?.();
    const threads = this.#threads;
    this.#threads = undefined;
    this.#ending = threads?.terminate();
    const error = this.#unavailable();
    this.#dependencies.logger.error({ reason }, "The store cannot go on; start evreg again.");
    this.#dependencies.onFatal?.(error);
  }

  #unavailable(details: ErrorDetails = {}): EvregError {
    const { reason = "The store cannot be read." } = this.condition();
    const error = new EvregError("unavailable", reason, details);
    if (this.#status === "recovering") error.retryAfterMs = TRY_AGAIN_MS;
    return error;
  }
}

/** @throws EngineFailure when these bytes cannot be committed */
async function writeCheck(threads: StoreThreads, bytes: number): Promise<void> {
  const { outcomes } = await threads.writer.request("write", singleWrite("file.probe", bytes));
  const [outcome] = JSON.parse(outcomes) as WireOutcome[];
  if (outcome === undefined || "error" in outcome) throw new EngineFailure("replace", "a test write failed");
}
