import type { Worker } from "node:worker_threads";
import type { CommitCounts } from "../../health.ts";
import { startThread, STORE_THREAD } from "../../../runtime/process.ts";
import {
  type Cargo,
  type FileCheck,
  type FileSettling,
  type FromWorker,
  type NumberMove,
  type OpenReport,
  packOps,
  type ToWorker,
  unpackOutcomes,
  type WireError,
  type WireFailure,
  type WireOutcome,
  type WorkerSetup,
} from "./protocol.ts";

/** The worker could not open the file, for this reason. */
export class WorkerRefused extends Error {
  override readonly name = "WorkerRefused";
  readonly refusal: WireFailure | WireError;

  constructor(refusal: WireFailure | WireError) {
    super("reason" in refusal ? refusal.reason : refusal.message);
    this.refusal = refusal;
  }
}

/** A request the engine failed at; what is left of the worker is only good for being ended. */
export class WorkerFailed extends Error {
  override readonly name = "WorkerFailed";
  readonly failure: WireFailure;

  constructor(failure: WireFailure) {
    super(failure.reason);
    this.failure = failure;
  }
}

export interface Answer {
  readonly outcomes: readonly WireOutcome[];
  readonly bytes: ArrayBuffer | undefined;
}

interface Pending {
  readonly promise: Promise<Answer>;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: WorkerFailed) => void;
}

/** Longest wait for answers of a thread that is to be ended; one stuck in the kernel would never give any. */
const PATIENCE_MS = 2_000;
const CUT_AT = 256;

/** One worker thread, from its start to its end; a request that takes long may be answered after a later one. */
export class WorkerHost {
  readonly report: OpenReport;
  readonly #worker: Worker;
  readonly #commits: CommitCounts;
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

  private constructor(worker: Worker, report: OpenReport, commits: CommitCounts, exited: Promise<void>) {
    this.#worker = worker;
    this.#commits = commits;
    this.report = report;
    this.#exited = exited;
  }

  /**
   * @param commits told of each commit
   * @throws WorkerRefused once the thread has ended and let go of the file
   */
  static start(
    setup: WorkerSetup,
    onCrash: (reason: string) => void,
    commits: CommitCounts,
  ): Promise<WorkerHost> {
    const worker = storeThread(setup);
    const { promise: exited, resolve: onExit } = Promise.withResolvers<void>();
    return new Promise((resolve, reject) => {
      let host: WorkerHost | undefined;
      let refusal: WireFailure | WireError | undefined;
      let crash = "it ended without being told to";
      worker.on("message", (message: FromWorker) => {
        if (message.kind === "ready") {
          resolve((host = new WorkerHost(worker, message.report, commits, exited)));
        } else if (message.kind === "refused") ({ refusal } = message);
        else if (host !== undefined) host.#take(message);
      });
      worker.on("messageerror", (error) => (crash = error.message));
      worker.on("error", (error) => (crash = error instanceof Error ? error.message : String(error)));
      worker.on("exit", () => {
        onExit();
        if (host === undefined) {
          reject(
            new WorkerRefused(refusal ?? { failure: "fatal", reason: `the store's thread failed: ${crash}` }),
          );
        } else if (host.#ended === undefined) {
          const reason = `the store's thread failed: ${crash}`;
          host.#end({ failure: "fatal", reason });
          onCrash(reason);
        }
      });
    });
  }

  /** @throws WorkerFailed */
  request(
    message: ({ readonly kind: "flight" } & Cargo) | Omit<ToWorker & { kind: "read" }, "id">,
  ): Promise<Answer> {
    if (this.#ended !== undefined) return Promise.reject(new WorkerFailed(this.#ended));
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const id = this.#firstId + this.#pending.length;
    if (message.kind === "read") this.#post({ ...message, id });
    else this.#post({ ...message, ...packOps(message.ops), id }, message.bytes);
    this.#pending.push({ promise, resolve, reject });
    return promise;
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
    const { promise: patience, resolve: lose } = Promise.withResolvers<void>();
    const timer = setTimeout(lose, PATIENCE_MS);
    await Promise.race([this.#idle(), patience]);
    clearTimeout(timer);
    this.#end(failure);
    await this.#worker.terminate();
    await this.#exited;
  }

  #take(message: Exclude<FromWorker, { kind: "ready" | "refused" }>): void {
    switch (message.kind) {
      case "landed":
        if (message.commit !== undefined) this.#commits.note(message.commit);
        for (const { id, packed } of message.flights) {
          this.#claim(id)?.resolve({ outcomes: unpackOutcomes(packed), bytes: message.bytes });
        }
        break;
      case "aborted":
        for (const id of message.ids) this.#claim(id)?.reject(new WorkerFailed(message.failure));
        break;
      case "answer":
        this.#claim(message.id)?.resolve({ outcomes: [message.outcome], bytes: message.bytes });
        break;
      case "unread":
        this.#claim(message.id)?.reject(new WorkerFailed(message.failure));
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
    for (const pending of this.#pending) pending?.reject(new WorkerFailed(this.#ended));
    this.#firstId += this.#pending.length;
    this.#pending.length = 0;
    this.#answered = 0;
  }
}

export type ThreadTask = WorkerSetup | FileCheck | FileSettling | NumberMove;

/** A thread that has the engine: the one that owns a data file, or one that does a single thing with a file. */
export function storeThread(task: ThreadTask): Worker {
  return startThread({ name: "evreg-store", inside: STORE_THREAD, module: workerModule, task });
}

/** As source under Node's type stripping, as JavaScript once built. */
function workerModule(): URL {
  return new URL(import.meta.url.endsWith(".ts") ? "../worker.ts" : "../worker.js", import.meta.url);
}
