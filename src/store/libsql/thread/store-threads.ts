import type { Worker } from "node:worker_threads";
import { EvregError, messageOf } from "../../../domain/error.ts";
import { startThread } from "../../../runtime/process.ts";
import type { FILE_TASKS } from "../operations.ts";
import {
  fromWireError,
  type FromThread,
  type OpenReport,
  type RequestKind,
  type ThreadRequests,
  type WriterSetup,
} from "./protocol.ts";
import { EngineFailure } from "./sql.ts";

/** Notices what a thread comes upon. */
export interface ThreadObserver {
  /** It has ended, and nobody asked it to. */
  crashed(reason: string): void;
  /** The payload of an event is damaged. */
  damaged(event: number): void;
}

/** The two threads that have the data file open. They are started and ended together: one failure is the end of both. */
export class StoreThreads {
  readonly writer: StoreThread;
  readonly reader: StoreThread;
  readonly report: OpenReport;

  private constructor(writer: StoreThread, reader: StoreThread, report: OpenReport) {
    this.writer = writer;
    this.reader = reader;
    this.report = report;
  }

  /** @throws EngineFailure, EvregError why the file could not be opened, once both threads have let go of it */
  static async start(setup: WriterSetup, observer: ThreadObserver): Promise<StoreThreads> {
    const writer = new StoreThread(observer);
    // The thread that reads loads while the other one brings the file up to date, which has to be alone with it.
    const reader = new StoreThread(observer);
    try {
      const report = await writer.request("openToWrite", setup);
      const { path, encryption } = setup;
      await reader.request("openToRead", { path, file: report.file, key: encryption?.key });
      return new StoreThreads(writer, reader, report);
    } catch (error) {
      await Promise.all([reader.terminate(), writer.terminate()]);
      throw error;
    }
  }

  /** Lets both threads finish what was requested, and ends them. The log is moved into the file once nobody reads it. */
  async close(): Promise<void> {
    await this.reader.close();
    await this.writer.close();
  }

  /** Ends both threads. The file is free when this resolves. */
  async terminate(): Promise<void> {
    await Promise.all([this.reader.terminate(), this.writer.terminate()]);
  }
}

/** So long answers of a thread that is to be ended are waited for; one that is stuck in the kernel would never give any. */
const TERMINATE_TIMEOUT_MS = 2_000;

/**
 * A thread that has the engine, from its start to its end. After an `EngineFailure` the only thing left to do with it is to end
 * it.
 */
export class StoreThread {
  readonly #worker: Worker;
  /**
   * The requests under way, by id. An id is used again once it is answered, so the list stays short. V8 keeps the tables that a
   * Map outgrows, with every answer in them, once it has taken one for long-lived.
   */
  readonly #pending: (PromiseWithResolvers<unknown> | undefined)[] = [];
  #ended: EngineFailure | undefined;
  readonly #exited: Promise<void>;

  readonly #observer: ThreadObserver;

  constructor(observer: ThreadObserver) {
    this.#observer = observer;
    const worker = startThread("evreg-store", "store-thread");
    this.#worker = worker;
    let crash = "it ended by itself";
    worker.on("message", (message: FromThread) => this.#receive(message));
    worker.on("messageerror", (error) => (crash = error.message));
    worker.on("error", (error) => (crash = messageOf(error)));
    this.#exited = new Promise((resolve) => {
      worker.on("exit", () => {
        resolve();
        if (this.#ended !== undefined) return;
        const failure = new EngineFailure("fatal", `the store's thread failed: ${crash}`);
        this.#end(failure);
        observer.crashed(failure.message);
      });
    });
  }

  /** @throws EngineFailure; EvregError as the request does */
  request<K extends RequestKind>(
    kind: K,
    ask: ThreadRequests[K]["ask"],
    bytes?: ArrayBuffer,
  ): Promise<ThreadRequests[K]["answer"]> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const pending = Promise.withResolvers<unknown>();
    const free = this.#pending.indexOf(undefined);
    const id = free === -1 ? this.#pending.length : free;
    this.#pending[id] = pending;
    this.#worker.postMessage({ id, kind, ask }, bytes === undefined ? [] : [bytes]);
    return pending.promise;
  }

  /** Lets the thread finish what was requested, let go of the file, and end. */
  async close(): Promise<void> {
    if (this.#ended === undefined) {
      this.request("close", null).catch(() => undefined);
      this.#ended = new EngineFailure("replace", "the store is closed");
    }
    await this.#exited;
  }

  /**
   * Ends the thread once it has answered all requests; those it does not answer soon fail. It has let go of the file when this
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

  #receive({ id, outcome, damaged }: FromThread): void {
    for (const event of damaged) this.#observer.damaged(event);
    const pending = this.#pending[id];
    this.#pending[id] = undefined;
    if ("error" in outcome) pending?.reject(fromWireError(outcome.error));
    else pending?.resolve(outcome.ok);
  }

  #end(failure: EngineFailure): void {
    this.#ended ??= failure;
    for (const pending of this.#pending.splice(0)) pending?.reject(this.#ended);
  }
}

type Tasks = typeof FILE_TASKS;

/**
 * Does something with a data file, or a copy of one, in a thread of its own: see the functions in `FILE_TASKS`, of which most
 * need a file that this process does not have open. Resolves once the thread has ended: only then are the file, and what the
 * engine put beside it, let go of.
 */
export async function fileTask<K extends keyof Tasks>(
  run: K,
  ...args: Parameters<Tasks[K]>
): Promise<ReturnType<Tasks[K]>> {
  let crash: string | undefined;
  const thread = new StoreThread({ crashed: (reason) => (crash = reason), damaged: () => undefined });
  try {
    return (await thread.request("task", { operation: run, args })) as ReturnType<Tasks[K]>;
  } catch (cause) {
    if (crash === undefined) throw cause;
    // Such a failure says nothing of the file: the engine may not be there to be loaded.
    throw new EvregError("unavailable", `${args[0]} could not be looked at: ${crash}.`, {}, { cause });
  } finally {
    await thread.close();
  }
}
