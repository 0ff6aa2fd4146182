import type { Worker } from "node:worker_threads";
import { messageOf } from "../../../domain/error.ts";
import { startThread } from "../../../runtime/process.ts";
import type { CommitObserver } from "../health.ts";
import type { FileId } from "./file-guard.ts";
import {
  fromWireError,
  type FromWorker,
  type OpenReport,
  type ReaderSetup,
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

type Message<K> = Extract<FromWorker, { readonly kind: K }>;
export type WriteReply = Message<"committed">;
type Answered = WriteReply | Message<"readDone">;

interface Pending {
  readonly promise: Promise<Answered>;
  readonly resolve: (reply: Answered) => void;
  readonly reject: (error: Error) => void;
}

/** Longest wait for answers of a thread that is to be ended; one stuck in the kernel would never give any. */
const TERMINATE_TIMEOUT_MS = 2_000;
const SPLICE_AT = 256;

/**
 * One thread that has the data file open, from its start to its end; a request that takes long may be answered after a
 * later one. After an `EngineFailure` the only thing left to do with it is to end it.
 */
abstract class WorkerClient {
  readonly #worker: Worker;
  readonly #onCrash: (reason: string) => void;
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

  protected constructor(worker: Worker, onCrash: (reason: string) => void) {
    this.#worker = worker;
    this.#onCrash = onCrash;
    let crash = "it ended by itself";
    worker.on("message", (message: FromWorker) => this.receive(message));
    worker.on("messageerror", (error) => (crash = error.message));
    worker.on("error", (error) => (crash = messageOf(error)));
    this.#exited = new Promise((resolve) => {
      worker.on("exit", () => {
        resolve();
        this.#exit(crash);
      });
    });
  }

  /** @throws EngineFailure; EvregError as the read does */
  async read(operation: string, args: readonly unknown[]): Promise<Reply> {
    const reply = await this.request((id) => ({ kind: "read", id, operation, args }));
    if (reply.kind !== "readDone") throw new Error("a read was answered as a write");
    if ("error" in reply.outcome) throw fromWireError(reply.outcome.error);
    return { value: reply.outcome.ok, bytes: reply.bytes };
  }

  /** Lets it finish what was requested, let go of the file, and end. */
  async close(): Promise<void> {
    this.#ended ??= new EngineFailure("replace", "the store is closed");
    this.post({ kind: "close" });
    await this.#exited;
  }

  /**
   * Ends it once it has answered all requests; those it does not answer soon fail. It has let go of the file when this
   * resolves. The wait is needed: a thread that is ended inside a call of the driver takes the whole process with it.
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

  protected request(toMessage: (id: number) => ToWorker, bytes?: ArrayBuffer): Promise<Answered> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const pending = Promise.withResolvers<Answered>();
    this.post(toMessage(this.#firstId + this.#pending.length), bytes);
    this.#pending.push(pending);
    return pending.promise;
  }

  protected receive(message: FromWorker): void {
    if (message.kind === "readDone") this.takePending(message.id)?.resolve(message);
  }

  protected takePending(id: number): Pending | undefined {
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

  /** It has ended, and nobody asked it to. */
  protected crashed(failure: EngineFailure): void {
    this.#onCrash(failure.message);
  }

  protected post(message: ToWorker, bytes?: ArrayBuffer): void {
    this.#worker.postMessage(message, bytes === undefined ? [] : [bytes]);
  }

  #exit(crash: string): void {
    if (this.#ended !== undefined) return;
    const failure = new EngineFailure("fatal", `the store's thread failed: ${crash}`);
    this.#end(failure);
    this.crashed(failure);
  }

  #end(failure: EngineFailure): void {
    this.#ended ??= failure;
    for (const pending of this.#pending) pending?.reject(this.#ended);
    this.#firstId += this.#pending.length;
    this.#pending.length = 0;
    this.#answered = 0;
  }
}

/** The thread that writes. It has the file first and lets go of it last. */
export class WriterClient extends WorkerClient {
  readonly #commits: CommitObserver;
  readonly #opened = Promise.withResolvers<OpenReport>();
  #openError: Error | undefined;
  #report: OpenReport | undefined;

  private constructor(worker: Worker, onCrash: (reason: string) => void, commits: CommitObserver) {
    super(worker, onCrash);
    this.#commits = commits;
  }

  /** @throws EngineFailure, EvregError why the file could not be opened, once the thread has let go of it */
  static async start(
    setup: WorkerSetup,
    onCrash: (reason: string) => void,
    commits: CommitObserver,
  ): Promise<WriterClient> {
    const client = new WriterClient(storeThread(setup), onCrash, commits);
    client.#report = await client.#opened.promise;
    return client;
  }

  get report(): OpenReport {
    return this.#report!;
  }

  /** @throws EngineFailure when none of it was done, or (`fatal`) nobody knows */
  async write(batch: WriteBatch): Promise<WriteReply> {
    const reply = await this.request((id) => ({ kind: "write", id, ...batch }), batch.bytes);
    if (reply.kind !== "committed") throw new Error("a write was answered as a read");
    return reply;
  }

  protected override receive(message: FromWorker): void {
    switch (message.kind) {
      case "ready":
        this.#opened.resolve(message.report);
        break;
      case "openFailed":
        this.#openError = fromWireError(message.error);
        break;
      case "committed":
        if (message.commit !== undefined) this.#commits.committed(message.commit);
        this.takePending(message.id)?.resolve(message);
        break;
      case "rolledBack":
        this.takePending(message.id)?.reject(fromWireError(message.error));
        break;
      case "readDone":
        super.receive(message);
    }
  }

  protected override crashed(failure: EngineFailure): void {
    if (this.#report === undefined) this.#opened.reject(this.#openError ?? failure);
    else super.crashed(failure);
  }
}

/** The thread that reads. */
export class ReaderClient extends WorkerClient {
  /** The thread loads from now on. */
  static start(onCrash: (reason: string) => void): ReaderClient {
    return new ReaderClient(storeThread({ role: "reader" } satisfies ReaderSetup), onCrash);
  }

  /** To be called once the other thread has the file open, and before the first read, which fails where this fails. */
  open(path: string, file: FileId, key: Uint8Array | undefined): void {
    this.post({ kind: "open", path, file, key });
  }
}

/** A thread that has the engine: one of the two that have a data file open, or one for a single task on a file. */
export function storeThread(task: unknown): Worker {
  return startThread("evreg-store", "store-thread", task);
}
