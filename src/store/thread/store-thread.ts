import type { Worker } from "node:worker_threads";
import { messageOf } from "../../domain/error.ts";
import { startThread, type ThreadScript } from "../../runtime/process.ts";
import { fromWireError, type FromThread, type RequestKind, type ThreadRequests } from "./protocol.ts";
import { EngineFailure } from "../sql/sql.ts";

/** Notices what a thread comes upon. */
export interface ThreadObserver {
  /** It has ended, and nobody asked it to. */
  crashed(reason: string): void;
  /** The payload of an event is damaged. */
  damaged(event: number): void;
}

/** A thread that has the engine, from its start to its end. */
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

  /** @param script what runs in the thread */
  constructor(script: ThreadScript, observer: ThreadObserver) {
    this.#observer = observer;
    const worker = startThread("evreg-store", script);
    this.#worker = worker;
    let crash = "it ended by itself";
    worker.on("message", (message: FromThread) => this.#receive(message));
    worker.on("messageerror", (error) => (crash = error.message));
    worker.on("error", (error) => (crash = messageOf(error)));
    this.#exited = new Promise((resolve) => {
      worker.on("exit", () => {
        resolve();
        if (this.#ended !== undefined) return;
        this.#ended = new EngineFailure("failed", `the store's thread failed: ${crash}`);
        for (const pending of this.#pending) pending?.reject(this.#ended);
        observer.crashed(this.#ended.message);
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

  /**
   * Lets the thread finish what was requested, let go of the file, and end. It is never ended from outside: inside a call of the
   * driver that takes the whole process with it.
   */
  async close(): Promise<void> {
    if (this.#ended === undefined) {
      this.request("close", null).catch(() => undefined);
      this.#ended = new EngineFailure("failed", "the store is closed");
    }
    await this.#exited;
  }

  #receive({ id, outcome, damaged }: FromThread): void {
    for (const event of damaged) this.#observer.damaged(event);
    const pending = this.#pending[id];
    this.#pending[id] = undefined;
    if ("error" in outcome) pending?.reject(fromWireError(outcome.error));
    else pending?.resolve(outcome.ok);
  }
}
