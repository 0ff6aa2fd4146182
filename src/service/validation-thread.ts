import type { Worker } from "node:worker_threads";
import type { Action, CompatibilityMode, Schemata } from "../domain/action.ts";
import { EvregError, messageOf } from "../domain/error.ts";
import type { Clock } from "../runtime/clock.ts";
import { FairQueue } from "../runtime/fair-queue.ts";
import { startThread } from "../runtime/process.ts";
import type {
  OffThreadCheck,
  OffThreadResult,
  ValidationCaller,
  OffThreadValidator,
} from "../schema/validate/compile.ts";
import type { Verdict } from "../schema/compatibility/compare.ts";
import type { Sample } from "../schema/generate/generator.ts";

/** A check as it goes to the thread. */
export interface ThreadCheck {
  readonly kind: "check";
  /** As JSON. */
  readonly schemata: string;
  readonly payload: Uint8Array;
  readonly maxSteps: number;
  readonly explains: boolean;
}

interface ThreadSample {
  readonly kind: "sample";
  readonly schemata: Schemata;
  readonly seed: number;
}

interface ThreadTypes {
  readonly kind: "types";
  readonly action: Action;
}

export interface ThreadComparison {
  readonly kind: "comparison";
  readonly older: Schemata;
  readonly newer: Schemata;
  readonly mode: CompatibilityMode;
}

export type ThreadTask = ThreadCheck | ThreadComparison | ThreadSample | ThreadTypes;

interface PendingTask {
  /** Of its payload, while it waits. */
  readonly bytes: number;
  /** Makes the task, and names the buffers that go with it. */
  readonly task: () => readonly [ThreadTask, ArrayBuffer[]];
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The thread ends after so long without work: few servers ever need it. */
const IDLE_MS = 10_000;
/** What may wait for one caller: the payloads of a few dozen connections. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
const MAX_WAITING = 2_000;
/** Of those that take a second or two in the worst case. */
const MAX_PRODUCTS_WAITING = 64;

/**
 * Makes things of schemas on another thread. Each takes milliseconds, and in the worst case some two seconds.
 * @throws EvregError `unavailable` when too many of the caller's wait, or the thread failed
 */
export interface SchemaProducts {
  /** The first sample of a seed. */
  sample(schemata: Schemata, seed: number, caller: unknown): Promise<Sample>;
  /** A file of TypeScript. */
  types(action: Action, caller: unknown): Promise<string>;
  /**
   * What a schema breaks that is to replace another; it was checked.
   * @param signal takes a comparison that waits out of the queue
   */
  compare(
    schemas: Omit<ThreadComparison, "kind">,
    caller: unknown,
    signal: AbortSignal | undefined,
  ): Promise<Verdict>;
}

/**
 * Validates payloads on a thread of its own, which is started for the first of them; or compares schemas there, and makes
 * samples and types. It gets one task at a time, so that its end fails no other, and callers take turns. Not by piscina,
 * which starts its workers from a file of its own: the single executable has none.
 */
export class ValidationThread implements OffThreadValidator, SchemaProducts {
  readonly #clock: Clock;
  readonly #queue = new FairQueue<PendingTask>();
  #thread: Worker | undefined;
  #running: PendingTask | undefined;
  #cancelEnd: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  check(
    check: OffThreadCheck,
    { caller, gone: signal, boundsItself = false, maxWaiting = MAX_WAITING }: ValidationCaller,
  ): Promise<OffThreadResult> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    const waiting = this.#queue.itemsOf(caller);
    const waitingBytes = waiting.reduce((sum, { bytes }) => sum + bytes, 0);
    const isFull = waiting.length >= maxWaiting || waitingBytes > MAX_WAITING_BYTES;
    if (isFull && !boundsItself) return Promise.reject(tooManyWaiting());
    const { schemata, payload, maxSteps, explains = false } = check;
    const task = (): readonly [ThreadCheck, ArrayBuffer[]] => {
      const copy = new Uint8Array(payload);
      const text = JSON.stringify(schemata);
      return [{ kind: "check", schemata: text, payload: copy, maxSteps, explains }, [copy.buffer]];
    };
    return this.#enqueue(task, payload.length, caller, signal) as Promise<OffThreadResult>;
  }

  sample(schemata: Schemata, seed: number, caller: unknown): Promise<Sample> {
    return this.#make({ kind: "sample", schemata, seed }, caller) as Promise<Sample>;
  }

  types(action: Action, caller: unknown): Promise<string> {
    return this.#make({ kind: "types", action }, caller) as Promise<string>;
  }

  compare(
    schemas: Omit<ThreadComparison, "kind">,
    caller: unknown,
    signal: AbortSignal | undefined,
  ): Promise<Verdict> {
    return this.#make({ kind: "comparison", ...schemas }, caller, signal) as Promise<Verdict>;
  }

  #make(task: ThreadTask, caller: unknown, signal?: AbortSignal): Promise<unknown> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    if (this.#queue.itemsOf(caller).length >= MAX_PRODUCTS_WAITING) return Promise.reject(tooManyWaiting());
    return this.#enqueue(() => [task, []], 0, caller, signal);
  }

  /** @param signal takes the task out of the queue; the thread ends one that runs by its steps, and nobody waits for that */
  #enqueue(
    task: PendingTask["task"],
    bytes: number,
    caller: unknown,
    signal: AbortSignal | undefined,
  ): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const leaveQueue = this.#queue.push(caller, { bytes, task, resolve, reject });
    const leave = (): void => {
      leaveQueue();
      reject(signal!.reason);
    };
    signal?.addEventListener("abort", leave);
    if (this.#running === undefined) this.#startNext();
    return promise.finally(() => signal?.removeEventListener("abort", leave));
  }

  #startNext(): void {
    const pending = (this.#running = this.#queue.next());
    if (pending === undefined) return this.#endWhenIdle();
    this.#cancelEnd?.();
    const thread = (this.#thread ??= this.#start());
    // The process waits for an answer, and not for an idle thread.
    thread.ref();
    thread.postMessage(...pending.task());
  }

  #endWhenIdle(): void {
    const thread = this.#thread;
    if (thread === undefined) return;
    thread.unref();
    this.#cancelEnd = this.#clock.setTimer(() => {
      this.#thread = undefined;
      void thread.terminate();
    }, IDLE_MS);
  }

  #start(): Worker {
    const thread = startThread("evreg-check", "validation-thread");
    let reason = "it ended by itself";
    thread.on("message", (answer: unknown) => {
      this.#running?.resolve(answer);
      this.#startNext();
    });
    thread.on("error", (error) => (reason = messageOf(error)));
    thread.on("exit", () => {
      if (this.#thread !== thread) return;
      this.#thread = undefined;
      this.#running?.reject(threadFailed(reason));
      this.#startNext();
    });
    return thread;
  }
}

function tooManyWaiting(): EvregError {
  return new EvregError(
    "unavailable",
    "Too much that you asked for, and that takes long to check or make, waits. Nothing of this was stored; try again in some seconds.",
  );
}

function threadFailed(reason: string): EvregError {
  return new EvregError(
    "unavailable",
    `This could not be done, as the thread that does it failed: ${reason}. Nothing was stored; try again.`,
  );
}
