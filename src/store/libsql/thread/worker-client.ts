import { messageOf } from "../../../domain/error.ts";
import type { Worker } from "node:worker_threads";
import type { CommitReport } from "../../health.ts";
import { startThread, STORE_THREAD } from "../../../runtime/process.ts";
import {
  type FileCheck,
  type FileSettling,
  type FromWorker,
  type NumberMove,
  type OpenReport,
  type ToWorker,
  type WireError,
  type WireFailure,
  type WireOutcome,
  type WriteBatch,
  type WriteOutcomes,
  type WorkerSetup,
} from "./protocol.ts";

/** The worker could not open the file, for this reason. */
export class OpenFailed extends Error {
  override readonly name = "OpenFailed";
  readonly failure: WireFailure | WireError;

  constructor(failure: WireFailure | WireError) {
    super("reason" in failure ? failure.reason : failure.message);
    this.failure = failure;
  }
}

/** A request the engine failed at; what is left of the worker is only good for being ended. */
export class WorkerError extends Error {
  override readonly name = "WorkerError";
  readonly failure: WireFailure;

  constructor(failure: WireFailure) {
    super(failure.reason);
    this.failure = failure;
  }
}

export interface WriteReply extends WriteOutcomes {
  readonly bytes: ArrayBuffer | undefined;
}

export interface ReadReply {
  readonly outcome: WireOutcome;
  readonly bytes: ArrayBuffer | undefined;
}

interface Pending {
  readonly promise: Promise<unknown>;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: WorkerError) => void;
}

/** Longest wait for answers of a thread that is to be ended; one stuck in the kernel would never give any. */
const TERMINATE_TIMEOUT_MS = 2_000;
const CUT_AT = 256;

/** One worker thread, from its start to its end; a request that takes long may be answered after a later one. */
export class WorkerClient {
  readonly report: OpenReport;
  readonly #worker: Worker;
  readonly #onCommit: (commit: CommitReport) => void;
  /**
   * By id, from `#firstId` on; none where it is answered. Not a Map: each table that it grows out of or empties leads to
   * the next one, so once V8 has taken a table for long-lived, it keeps all that came after, with every answer.
   */
  readonly #pending: (Pending | undefined)[] = [];
  #firstId = 1;
  /** Answered ones at the front. */
  #answered = 0;
  #ended: WireFailure | undefined;
  readonly #exited: Promise<void>;

  private constructor(
    worker: Worker,
    report: OpenReport,
    onCommit: (commit: CommitReport) => void,
    exited: Promise<void>,
  ) {
    this.#worker = worker;
    this.#onCommit = onCommit;
    this.report = report;
    this.#exited = exited;
  }

  /**
   * @throws OpenFailed once the thread has ended and let go of the file
   */
  static start(
    setup: WorkerSetup,
    onCrash: (reason: string) => void,
    onCommit: (commit: CommitReport) => void,
  ): Promise<WorkerClient> {
    const worker = storeThread(setup);
    const { promise: exited, resolve: onExit } = Promise.withResolvers<void>();
    return new Promise((resolve, reject) => {
      let host: WorkerClient | undefined;
      let failure: WireFailure | WireError | undefined;
      let crash = "it ended without being told to";
      worker.on("message", (message: FromWorker) => {
        if (message.kind === "ready") {
          resolve((host = new WorkerClient(worker, message.report, onCommit, exited)));
        } else if (message.kind === "openFailed") ({ failure } = message);
        else if (host !== undefined) host.#take(message);
      });
      worker.on("messageerror", (error) => (crash = error.message));
      worker.on("error", (error) => (crash = messageOf(error)));
      worker.on("exit", () => {
        onExit();
        if (host === undefined) {
          reject(
            new OpenFailed(failure ?? { failure: "fatal", reason: `the store's thread failed: ${crash}` }),
          );
        } else if (host.#ended === undefined) {
          const reason = `the store's thread failed: ${crash}`;
          host.#end({ failure: "fatal", reason });
          onCrash(reason);
        }
      });
    });
  }

  /** @throws WorkerError */
  write(batch: WriteBatch): Promise<WriteReply> {
    return this.#request((id) => ({ kind: "write", id, ...batch }), batch.bytes) as Promise<WriteReply>;
  }

  /** @throws WorkerError */
  read(name: string, args: readonly unknown[]): Promise<ReadReply> {
    return this.#request((id) => ({ kind: "read", id, name, args })) as Promise<ReadReply>;
  }

  #request(toMessage: (id: number) => ToWorker, bytes?: ArrayBuffer): Promise<unknown> {
    if (this.#ended !== undefined) return Promise.reject(new WorkerError(this.#ended));
    const pending = Promise.withResolvers<unknown>();
    this.#post(toMessage(this.#firstId + this.#pending.length), bytes);
    this.#pending.push(pending);
    return pending.promise;
  }

  async #idle(): Promise<void> {
    await Promise.allSettled(this.#pending.flatMap((pending) => pending?.promise ?? []));
  }

  /** Lets it finish what it was asked, move the log into the file, and end. */
  async close(): Promise<void> {
    this.#ended ??= { failure: "replace", reason: "the store is closed" };
    this.#post({ kind: "close" });
    await this.#exited;
  }

  /**
   * Ends it once it has answered what it was asked; what it cannot answer soon fails. The file is free when this resolves.
   * A thread that is ended inside a call of the driver takes the whole process with it, hence the wait.
   */
  async terminate(): Promise<void> {
    const failure: WireFailure = { failure: "replace", reason: "the store's thread was ended" };
    this.#ended ??= failure;
    const { promise: timeout, resolve: expire } = Promise.withResolvers<void>();
    const timer = setTimeout(expire, TERMINATE_TIMEOUT_MS);
    await Promise.race([this.#idle(), timeout]);
    clearTimeout(timer);
    this.#end(failure);
    await this.#worker.terminate();
    await this.#exited;
  }

  #take(message: Exclude<FromWorker, { kind: "ready" | "openFailed" }>): void {
    switch (message.kind) {
      case "committed":
        if (message.commit !== undefined) this.#onCommit(message.commit);
        for (const { id, outcomes } of message.batches) {
          this.#claim(id)?.resolve({ ...outcomes, bytes: message.bytes });
        }
        break;
      case "rolledBack":
        for (const id of message.ids) this.#claim(id)?.reject(new WorkerError(message.failure));
        break;
      case "readDone":
        this.#claim(message.id)?.resolve({ outcome: message.outcome, bytes: message.bytes });
        break;
      case "readFailed":
        this.#claim(message.id)?.reject(new WorkerError(message.failure));
        break;
    }
  }

  #post(message: ToWorker, bytes?: ArrayBuffer): void {
    this.#worker.postMessage(message, bytes === undefined ? [] : [bytes]);
  }

  #claim(id: number): Pending | undefined {
    const place = id - this.#firstId;
    const pending = this.#pending[place];
    if (pending !== undefined) this.#pending[place] = undefined;
    while (this.#answered < this.#pending.length && this.#pending[this.#answered] === undefined) {
      this.#answered += 1;
    }
    // Cut off by the hundred, as cutting off one by one would move the whole list each time.
    if (this.#answered === this.#pending.length || this.#answered >= CUT_AT) {
      this.#pending.splice(0, this.#answered);
      this.#firstId += this.#answered;
      this.#answered = 0;
    }
    return pending;
  }

  #end(failure: WireFailure): void {
    this.#ended ??= failure;
    for (const pending of this.#pending) pending?.reject(new WorkerError(this.#ended));
    this.#firstId += this.#pending.length;
    this.#pending.length = 0;
    this.#answered = 0;
  }
}

export type ThreadTask = WorkerSetup | FileCheck | FileSettling | NumberMove;

/** A thread that has the engine: the one that owns a data file, or one that does a single thing with a file. */
export function storeThread(task: ThreadTask): Worker {
  return startThread({ name: "evreg-store", bundledName: STORE_THREAD, module: workerModule, task });
}

/** As source under Node's type stripping, as JavaScript once built. */
function workerModule(): URL {
  return new URL(import.meta.url.endsWith(".ts") ? "../worker.ts" : "../worker.js", import.meta.url);
}
