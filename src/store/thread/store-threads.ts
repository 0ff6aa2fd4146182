import type { Worker } from "node:worker_threads";
import { type ErrorDetails, EvregError, messageOf } from "../../domain/error.ts";
import type { Histogram } from "../../metrics/counters.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import { startThread, type ThreadScript } from "../../runtime/process.ts";
import type { StoreCondition } from "../store.ts";
import {
  type Committed,
  fromWireError,
  type FromThread,
  type OpenReport,
  type RequestKind,
  singleWrite,
  type ThreadRequests,
  type WriteBatch,
} from "./protocol.ts";
import { EngineFailure } from "../sql/sql.ts";

/** Notices what a thread comes upon. */
interface ThreadObserver {
  /** It has ended, and nobody asked it to. */
  readonly crashed?: (reason: string) => void;
  readonly damaged?: (event: number) => void;
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
  constructor(script: ThreadScript, observer: ThreadObserver = {}) {
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
        observer.crashed?.(this.#ended.message);
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
    for (const event of damaged) this.#observer.damaged?.(event);
    const pending = this.#pending[id];
    this.#pending[id] = undefined;
    if ("error" in outcome) pending?.reject(fromWireError(outcome.error));
    else pending?.resolve(outcome.ok);
  }
}

export interface StoreThreadsOptions {
  readonly script: ThreadScript;
  /** Whether reads have a thread of their own. */
  readonly hasReader: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Observes how many seconds it took to make each transaction durable. */
  readonly commits?: Histogram | undefined;
  readonly onFatal?: ((error: EvregError) => void) | undefined;
}

/** The details of a write of which certainly nothing was stored: it was refused before, or its transaction was undone. */
export const NOTHING_STORED: ErrorDetails = { stored: false };

const MAX_DAMAGED = 1_000;
const TRY_AGAIN_MS = 1_000;
/** So much is written as a trial, so that there is room for a few writes when they are taken again. */
const TRIAL_BYTES = 1024 * 1024;

/**
 * The threads that have the data open: one writes, and another one reads beside it where there is much to do. While the disk is
 * full, writes are refused until a trial is committed, which is made about every second. Any other failure of the engine ends the
 * store for good, as nobody knows then what is in the file.
 */
export class StoreThreads {
  readonly #options: StoreThreadsOptions;
  readonly #writer: StoreThread;
  readonly #reader: StoreThread;
  /** The events that were found damaged. */
  readonly damaged = new Set<number>();
  #status: "ok" | "full" | "failed" | "closed" = "closed";
  #reason = "";
  #cancelTrial: (() => void) | undefined;

  constructor(options: StoreThreadsOptions) {
    this.#options = options;
    const observer = {
      crashed: (reason: string) => this.#stop(reason),
      damaged: (event: number) => this.#noteDamaged(event),
    };
    this.#writer = new StoreThread(options.script, observer);
    // The thread that reads loads while the other one brings the file up to date, which has to be alone with it.
    this.#reader = options.hasReader ? new StoreThread(options.script, observer) : this.#writer;
  }

  /** @throws EngineFailure, EvregError why the file could not be opened, once the threads have let go of it */
  async open<R>(setup: unknown): Promise<OpenReport<R>> {
    try {
      const report = await this.#writer.request("openToWrite", setup);
      if (this.#reader !== this.#writer) await this.#reader.request("openToRead", report.reader);
      this.#status = "ok";
      for (const { level, details, message } of report.notices) this.#options.logger[level](details, message);
      return report as OpenReport<R>;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** Logs each event that was found damaged once. */
  #noteDamaged(event: number): void {
    if (this.damaged.has(event) || this.damaged.size >= MAX_DAMAGED) return;
    this.damaged.add(event);
    this.#options.logger.error(
      { event },
      "The payload of an event is damaged where it is stored: it is not shown and not sent. Restore a backup from before the damage; evreg backup, of a data folder, tells of all.",
    );
  }

  condition(): StoreCondition {
    if (this.#status === "ok") return { status: "ok" };
    if (this.#status === "closed") return { status: "closed", reason: "The store is closed." };
    const next = this.#status === "failed" ? " Start evreg again." : "";
    return { status: "unavailable", reason: `Nothing can be stored: ${this.#reason}.${next}` };
  }

  /** @throws EvregError `unavailable` while nothing can be committed, with `NOTHING_STORED` where that is certain */
  async write(batch: WriteBatch): Promise<Committed> {
    if (this.#status !== "ok") throw this.#unavailable(NOTHING_STORED);
    const committed = await this.#ask(() => this.#writer.request("write", batch, batch.bytes));
    this.#options.commits?.observe(committed.commitMs / 1_000);
    return committed;
  }

  /** Reads go on while the disk is full. */
  read(operation: string, args: readonly unknown[]): Promise<unknown> {
    return this.#ask(async () => {
      try {
        return await this.#reader.request("read", { operation, args });
      } catch (error) {
        // The thread that writes knows what was done to its files, so its failure goes before that of the one that reads.
        // Where the data file was moved or cut short, it also does what is left to do.
        if (error instanceof EngineFailure && error.isFatal) await this.#commitTrial(0);
        // A thread that cannot read says nothing of writing.
        if (error instanceof EngineFailure && error.kind === "away") throw awayError(error);
        throw error;
      }
    });
  }

  async #ask<T>(ask: () => Promise<T>): Promise<T> {
    if (this.#status === "failed" || this.#status === "closed") throw this.#unavailable();
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof EngineFailure)) throw error;
      const { message } = error;
      if (error.kind === "in_use")
        throw new EvregError("unavailable", `The store is busy: ${message}.`, NOTHING_STORED);
      if (error.isFatal) this.#stop(message);
      else this.#refuseWrites(message);
      throw this.#unavailable(error.kind === "full" || error.kind === "away" ? NOTHING_STORED : {});
    }
  }

  /** Lets the threads finish what was requested, and ends them. The log is moved into the file once nobody reads it. */
  async close(): Promise<void> {
    this.#cancelTrial?.();
    if (this.#status !== "failed") this.#status = "closed";
    await this.#reader.close();
    await this.#writer.close();
  }

  #refuseWrites(reason: string): void {
    if (this.#status !== "ok") return;
    this.#status = "full";
    this.#reason = reason;
    this.#options.logger.error({ reason }, "The store takes no writes for now.");
    this.#tryLater();
  }

  #tryLater(): void {
    this.#cancelTrial = this.#options.clock.setTimer(() => void this.#try(), TRY_AGAIN_MS);
  }

  async #try(): Promise<void> {
    try {
      for (const bytes of [TRIAL_BYTES, 0]) await this.#commitTrial(bytes);
    } catch (error) {
      if (!(error instanceof EngineFailure) || error.isFatal) this.#stop(messageOf(error));
      else if (this.#status === "full") this.#tryLater();
      return;
    }
    if (this.#status !== "full") return;
    this.#status = "ok";
    this.#options.logger.info({}, "The store takes writes again.");
  }

  /** @throws EngineFailure when these bytes cannot be committed */
  async #commitTrial(bytes: number): Promise<void> {
    const { outcomes } = await this.#writer.request("write", singleWrite("file.probe", bytes));
    const [outcome] = outcomes;
    if (outcome === undefined || "error" in outcome)
      throw new EngineFailure("failed", "a trial write failed");
  }

  /** Gives up: what is in the file is in doubt, or a thread that had it is gone. */
  #stop(reason: string): void {
    if (this.#status === "failed" || this.#status === "closed") return;
    this.#status = "failed";
    this.#reason = reason;
    this.#cancelTrial?.();
    this.#options.logger.error({ reason }, "The store cannot go on; start evreg again.");
    this.#options.onFatal?.(this.#unavailable());
  }

  #unavailable(details: ErrorDetails = {}): EvregError {
    const { reason = "The store cannot be read." } = this.condition();
    const error = new EvregError("unavailable", reason, details);
    if (this.#status === "full") error.retryAfterMs = TRY_AGAIN_MS;
    return error;
  }
}

function awayError({ message }: EngineFailure): EvregError {
  const error = new EvregError("unavailable", `Nothing can be read: ${message}.`);
  error.retryAfterMs = TRY_AGAIN_MS;
  return error;
}
