import type { Worker } from "node:worker_threads";
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

/** A check as it goes to the thread. */
export interface ThreadCheck {
  /** As JSON. */
  readonly schemata: string;
  readonly payload: Uint8Array;
  readonly maxSteps: number;
  readonly explains: boolean;
}

interface PendingCheck {
  readonly check: OffThreadCheck;
  readonly resolve: (answer: OffThreadResult) => void;
  readonly reject: (error: Error) => void;
}

/** The thread ends after so long without work: few servers ever need it. */
const IDLE_MS = 10_000;
/** What may wait for one caller: the payloads of a few dozen connections. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
const MAX_WAITING = 2_000;

/**
 * Validates payloads on a thread of its own, which is started for the first of them. It gets one at a time, so that its
 * end fails no other, and callers take turns. Not by piscina, which starts its workers from a file of its own: the single
 * executable has none.
 */
export class ValidationThread implements OffThreadValidator {
  readonly #clock: Clock;
  readonly #queue = new FairQueue<PendingCheck>();
  #thread: Worker | undefined;
  #running: PendingCheck | undefined;
  #cancelEnd: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  check(
    check: OffThreadCheck,
    { caller, gone: signal, boundsItself = false, maxWaiting = MAX_WAITING }: ValidationCaller,
  ): Promise<OffThreadResult> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    const queue = this.#queue;
    const isFull = queue.countOf(caller) >= maxWaiting || queue.bytesOf(caller) > MAX_WAITING_BYTES;
    if (isFull && !boundsItself) return Promise.reject(tooManyWaiting());
    return new Promise((resolve, reject) => {
      const pending = { check, resolve, reject };
      queue.push(caller, pending, signal && { signal, onAbort: reject }, check.payload.length);
      if (this.#running === undefined) this.#startNext();
    });
  }

  #startNext(): void {
    const pending = (this.#running = this.#queue.next());
    if (pending === undefined) return this.#endWhenIdle();
    this.#cancelEnd?.();
    const thread = (this.#thread ??= this.#start());
    // The process waits for an answer, and not for an idle thread.
    thread.ref();
    const { schemata, payload, maxSteps, explains = false } = pending.check;
    const copy = new Uint8Array(payload);
    const check: ThreadCheck = { schemata: JSON.stringify(schemata), payload: copy, maxSteps, explains };
    thread.postMessage(check, [copy.buffer]);
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
    thread.on("message", (answer: OffThreadResult) => {
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
    "Too many payloads that you sent, and that take long to check, wait for it. Nothing of this one was stored; try again in some seconds.",
  );
}

function threadFailed(reason: string): EvregError {
  return new EvregError(
    "unavailable",
    `The payload could not be checked, as the thread that does it failed: ${reason}. Nothing of it was stored; try again.`,
  );
}
