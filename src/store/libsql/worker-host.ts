import { Worker } from "node:worker_threads";
import type {
  FromWorker,
  OpenReport,
  ToWorker,
  WireError,
  WireFailure,
  WireOutcome,
  WorkerSetup,
} from "./messages.ts";

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

interface Pending {
  readonly resolve: (answer: { outcomes: readonly WireOutcome[]; bytes: ArrayBuffer | undefined }) => void;
  readonly reject: (error: WorkerFailed) => void;
}

/** One worker thread, from its start to its end; requests are answered in their order. */
export class WorkerHost {
  readonly report: OpenReport;
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  #ended: WireFailure | undefined;
  readonly #exited: Promise<void>;

  private constructor(worker: Worker, report: OpenReport, exited: Promise<void>) {
    this.#worker = worker;
    this.report = report;
    this.#exited = exited;
  }

  /** @throws WorkerRefused once the thread has ended and let go of the file */
  static start(setup: WorkerSetup, onCrash: (reason: string) => void): Promise<WorkerHost> {
    const worker = new Worker(workerEntry(), {
      name: "evreg-store",
      workerData: setup,
      // The host's flags (a test runner's loader, an inspector) are nothing to this thread.
      execArgv: [],
      env: {},
    });
    const { promise: exited, resolve: onExit } = Promise.withResolvers<void>();
    return new Promise((resolve, reject) => {
      let host: WorkerHost | undefined;
      let refusal: WireFailure | WireError | undefined;
      let crash = "it ended without being told to";
      worker.on("message", (message: FromWorker) => {
        if (message.kind === "ready") resolve((host = new WorkerHost(worker, message.report, exited)));
        else if (message.kind === "refused") ({ refusal } = message);
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
    message: Omit<ToWorker & { kind: "flight" }, "id"> | Omit<ToWorker & { kind: "read" }, "id">,
  ): Promise<{ outcomes: readonly WireOutcome[]; bytes: ArrayBuffer | undefined }> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== undefined) return reject(new WorkerFailed(this.#ended));
      this.#lastId += 1;
      this.#pending.set(this.#lastId, { resolve, reject });
      const transfer = message.kind === "flight" && message.bytes !== undefined ? [message.bytes] : [];
      this.#worker.postMessage({ ...message, id: this.#lastId }, transfer);
    });
  }

  /** Lets it finish what it was asked, move the log into the file, and end. */
  async close(): Promise<void> {
    this.#ended ??= { failure: "replace", reason: "the store is closed" };
    this.#worker.postMessage({ kind: "close" } satisfies ToWorker, []);
    await this.#exited;
  }

  /** Ends it where it stands. What was asked and not answered fails. The file is free when this resolves. */
  async terminate(): Promise<void> {
    this.#end({ failure: "replace", reason: "the store's thread was ended" });
    await this.#worker.terminate();
    await this.#exited;
  }

  #take(message: Exclude<FromWorker, { kind: "ready" | "refused" }>): void {
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return;
    this.#pending.delete(message.id);
    if (message.kind === "landed") {
      pending.resolve({ outcomes: message.outcomes, bytes: message.bytes });
    } else if (message.kind === "answer") {
      pending.resolve({ outcomes: [message.outcome], bytes: message.bytes });
    } else {
      pending.reject(new WorkerFailed(message.failure));
    }
  }

  #end(failure: WireFailure): void {
    this.#ended ??= failure;
    for (const pending of this.#pending.values()) pending.reject(new WorkerFailed(this.#ended));
    this.#pending.clear();
  }
}

/** The worker beside this module: as source under Node's type stripping, as JavaScript once built. */
function workerEntry(): URL {
  return new URL(import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js", import.meta.url);
}
