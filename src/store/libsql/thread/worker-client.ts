import type { Worker } from "node:worker_threads";
import { messageOf } from "../../../domain/error.ts";
import { startThread } from "../../../runtime/process.ts";
import type { CommitObserver } from "../../health.ts";
import {
  fromWireError,
  type FromWorker,
  type GroupOutcome,
  type OpenReport,
  type ToWorker,
  type WorkerSetup,
  type WriteBatch,
} from "./protocol.ts";
import { EngineFailure } from "./sql.ts";

/** What a request was answered, with the bytes that its value refers to. */
export interface Reply<T = unknown> {
  readonly value: T;
  readonly bytes: ArrayBuffer | undefined;
}

interface Pending {
  readonly promise: Promise<unknown>;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Longest wait for answers of a thread that is to be ended; one stuck in the kernel would never give any. */
const TERMINATE_TIMEOUT_MS = 2_000;
const SPLICE_AT = 256;

/**
 * One worker thread, from its start to its end; a request that takes long may be answered after a later one. After an
 * `EngineFailure` the only thing left to do with it is to end it.
 */
export class WorkerClient {
  readonly report: OpenReport;
  readonly #worker: Worker;
  readonly #commits: CommitObserver;
  /**
   * By id, from `#firstId` on; `undefined` where it is answered. Not a Map: V8 keeps the tables that a Map outgrows,
   * with every answer in them, once it has taken one for long-lived.
   */
  readonly #pending: (Pending | undefined)[] = [];
  #firstId = 1;
  /** Answered ones at the front. */
  #answered = 0;
  #ended: EngineFailure | undefined;
  readonly #exited: Promise<void>;

  private constructor(worker: Worker, report: OpenReport, commits: CommitObserver, exited: Promise<void>) {
    this.#worker = worker;
    this.#commits = commits;
    this.report = report;
    this.#exited = exited;
  }

  /** @throws EngineFailure, EvregError why the file could not be opened, once the thread has let go of it */
  static start(
    setup: WorkerSetup,
    onCrash: (reason: string) => void,
    commits: CommitObserver,
  ): Promise<WorkerClient> {
    const worker = storeThread(setup);
    const { promise: exited, resolve: onExit } = Promise.withResolvers<void>();
    return new Promise((resolve, reject) => {
      let client: WorkerClient | undefined;
      let openError: Error | undefined;
      let crash = "it ended by itself";
      worker.on("message", (message: FromWorker) => {
        if (message.kind === "ready") {
          resolve((client = new WorkerClient(worker, message.report, commits, exited)));
        } else if (message.kind === "openFailed") openError = fromWireError(message.error);
        else if (client !== undefined) client.#receive(message);
      });
      worker.on("messageerror", (error) => (crash = error.message));
      worker.on("error", (error) => (crash = messageOf(error)));
      worker.on("exit", () => {
        onExit();
        const failure = new EngineFailure("fatal", `the store's thread failed: ${crash}`);
        if (client === undefined) reject(openError ?? failure);
        else if (client.#ended === undefined) {
          client.#end(failure);
          onCrash(failure.message);
        }
      });
    });
  }

  /** @throws EngineFailure when none of it was done, or (`fatal`) nobody knows */
  write(batch: WriteBatch): Promise<Reply<readonly GroupOutcome[]>> {
    const reply = this.#request((id) => ({ kind: "write", id, ...batch }), batch.bytes);
    return reply as Promise<Reply<readonly GroupOutcome[]>>;
  }

  /** @throws EngineFailure; EvregError as the read does */
  read(name: string, args: readonly unknown[]): Promise<Reply> {
    return this.#request((id) => ({ kind: "read", id, name, args })) as Promise<Reply>;
  }

  #request(toMessage: (id: number) => ToWorker, bytes?: ArrayBuffer): Promise<unknown> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const pending = Promise.withResolvers<unknown>();
    this.#post(toMessage(this.#firstId + this.#pending.length), bytes);
    this.#pending.push(pending);
    return pending.promise;
  }

  /** Lets it finish what was requested, move the log into the file, and end. */
  async close(): Promise<void> {
    this.#ended ??= new EngineFailure("replace", "the store is closed");
    this.#post({ kind: "close" });
    await this.#exited;
  }

  /**
   * Ends it once it has answered all requests; those it does not answer soon fail. The file is free when this resolves.
   * The wait is needed: a thread that is ended inside a call of the driver takes the whole process with it.
   */
  async terminate(): Promise<void> {
    const failure = new EngineFailure("replace", "the store's thread was ended");
    this.#ended ??= failure;
    const { promise: timeout, resolve: expire } = Promise.withResolvers<void>();
    const timer = setTimeout(expire, TERMINATE_TIMEOUT_MS);
    const answers = this.#pending.flatMap((pending) => pending?.promise ?? []);
    await Promise.race([Promise.allSettled(answers), timeout]);
    clearTimeout(timer);
    this.#end(failure);
    await this.#worker.terminate();
    await this.#exited;
  }

  #receive(message: Exclude<FromWorker, { kind: "ready" | "openFailed" }>): void {
    switch (message.kind) {
      case "committed":
        if (message.commit !== undefined) this.#commits.committed(message.commit);
        for (const { id, outcomes } of message.batches) {
          this.#takePending(id)?.resolve({ value: outcomes, bytes: message.bytes });
        }
        break;
      case "rolledBack":
        for (const id of message.ids) this.#takePending(id)?.reject(fromWireError(message.error));
        break;
      case "readDone": {
        const { id, outcome, bytes } = message;
        if ("error" in outcome) this.#takePending(id)?.reject(fromWireError(outcome.error));
        else this.#takePending(id)?.resolve({ value: outcome.ok, bytes });
        break;
      }
    }
  }

  #post(message: ToWorker, bytes?: ArrayBuffer): void {
    this.#worker.postMessage(message, bytes === undefined ? [] : [bytes]);
  }

  #takePending(id: number): Pending | undefined {
    const index = id - this.#firstId;
    const pending = this.#pending[index];
    if (pending !== undefined) this.#pending[index] = undefined;
    while (this.#answered < this.#pending.length && this.#pending[this.#answered] === undefined) {
      this.#answered += 1;
    }
    // Not one by one, which would move the whole list each time.
    if (this.#answered === this.#pending.length || this.#answered >= SPLICE_AT) {
      this.#pending.splice(0, this.#answered);
      this.#firstId += this.#answered;
      this.#answered = 0;
    }
    return pending;
  }

  #end(failure: EngineFailure): void {
    this.#ended ??= failure;
    for (const pending of this.#pending) pending?.reject(this.#ended);
    this.#firstId += this.#pending.length;
    this.#pending.length = 0;
    this.#answered = 0;
  }
}

/** A thread that has the engine: the one that owns a data file, or one for a single task on a file. */
export function storeThread(task: unknown): Worker {
  return startThread("evreg-store", "store-thread", task);
}
