import type { Worker } from "node:worker_threads";
import { EvregError } from "../domain/error.ts";
import type { Clock } from "../runtime/clock.ts";
import { CallerLine } from "../runtime/fair-queue.ts";
import { CHECK_THREAD, startThread } from "../runtime/process.ts";
import type { LongCheck, LongCheckAnswer, LongCheckAsker, LongChecks } from "../schema/validate/compile.ts";

/** A check as it goes to the thread. */
export interface LongCheckMessage {
  /** As JSON. */
  readonly schemata: string;
  readonly payload: Uint8Array;
  readonly maxSteps: number;
  readonly explains: boolean;
}

interface Waiting {
  readonly check: LongCheck;
  readonly caller: object;
  readonly resolve: (answer: LongCheckAnswer) => void;
  readonly reject: (error: unknown) => void;
  /** No more to its caller's signal: its turn has come. */
  stopListening: () => void;
}

/** A thread without work ends after that long: few servers ever need one. */
const IDLE_MS = 10_000;
/** Bytes of payloads that may wait for one caller, and their number: what a few dozen connections have under way. */
const MOST_WAITING_BYTES = 64 * 1024 * 1024;
const MOST_WAITING = 2_000;

/**
 * A thread that checks payloads, started when there is one to be checked. It is given one at a time, so that its end can
 * fail no more than that one, and callers can take turns.
 */
export class CheckThread implements LongChecks {
  readonly #clock: Clock;
  readonly #line = new CallerLine<Waiting>();
  readonly #waitingBytes = new WeakMap<object, number>();
  #thread: Worker | undefined;
  #underWay: Waiting | undefined;
  #cancelEnd: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  check(
    check: LongCheck,
    { caller, gone: signal, boundsItself = false, maxWaiting = MOST_WAITING }: LongCheckAsker,
  ): Promise<LongCheckAnswer> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    const bytes = this.#waitingBytes.get(caller) ?? 0;
    const isFull = this.#line.countOf(caller) >= maxWaiting || bytes > MOST_WAITING_BYTES;
    if (isFull && !boundsItself) return Promise.reject(tooMany());
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { check, caller, resolve, reject, stopListening: () => {} };
      if (signal !== undefined) {
        const leave = (): void => {
          this.#line.remove(caller, waiting);
          this.#left(waiting);
          reject(signal.reason as Error);
        };
        signal.addEventListener("abort", leave, { once: true });
        waiting.stopListening = () => signal.removeEventListener("abort", leave);
      }
      this.#line.add(caller, waiting);
      this.#waitingBytes.set(caller, bytes + check.payload.length);
      if (this.#underWay === undefined) this.#next();
    });
  }

  #left({ caller, check }: Waiting): void {
    this.#waitingBytes.set(caller, (this.#waitingBytes.get(caller) ?? 0) - check.payload.length);
  }

  #next(): void {
    const waiting = (this.#underWay = this.#line.next());
    if (waiting === undefined) return this.#rest();
    waiting.stopListening();
    this.#left(waiting);
    this.#cancelEnd?.();
    const thread = (this.#thread ??= this.#start());
    // The process stays for an answer, and not for a thread that has nothing to do.
    thread.ref();
    const { schemata, payload, maxSteps, explains = false } = waiting.check;
    const copy = new Uint8Array(payload);
    const message: LongCheckMessage = {
      schemata: JSON.stringify(schemata),
      payload: copy,
      maxSteps,
      explains,
    };
    thread.postMessage(message, [copy.buffer]);
  }

  #rest(): void {
    const thread = this.#thread;
    if (thread === undefined) return;
    thread.unref();
    this.#cancelEnd = this.#clock.setTimer(() => {
      this.#thread = undefined;
      void thread.terminate();
    }, IDLE_MS);
  }

  #start(): Worker {
    const thread = startThread({ name: "evreg-check", inside: CHECK_THREAD, module: workerModule });
    let reason = "it ended without being told to";
    thread.on("message", (answer: LongCheckAnswer) => {
      this.#underWay?.resolve(answer);
      this.#next();
    });
    thread.on("error", (error) => (reason = error instanceof Error ? error.message : String(error)));
    thread.on("exit", () => {
      if (this.#thread !== thread) return;
      this.#thread = undefined;
      this.#underWay?.reject(ended(reason));
      this.#next();
    });
    return thread;
  }
}

function workerModule(): URL {
  return new URL(
    import.meta.url.endsWith(".ts") ? "./validation-worker.ts" : "./validation-worker.js",
    import.meta.url,
  );
}

function tooMany(): EvregError {
  return new EvregError(
    "unavailable",
    "Too many payloads that you sent, and that take long to check, wait for it. Nothing of this one was stored; try again in some seconds.",
  );
}

function ended(reason: string): EvregError {
  return new EvregError(
    "unavailable",
    `The payload could not be checked, as the thread that does it failed: ${reason}. Nothing of it was stored; try again.`,
  );
}
