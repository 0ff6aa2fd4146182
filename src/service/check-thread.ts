import type { Worker } from "node:worker_threads";
import { EvregError } from "../domain/error.ts";
import type { Clock } from "../runtime/clock.ts";
import { CHECK_THREAD } from "../runtime/executable.ts";
import { startThread } from "../runtime/thread.ts";
import type { Failure } from "../schema/failure.ts";

/** One payload held to one schema. */
export interface LongCheck {
  /** The schema as JSON. */
  readonly schemata: string;
  /** Well-formed JSON with a buffer of its own. */
  readonly payload: Uint8Array<ArrayBuffer>;
  readonly maxSteps: number;
}

export interface LongCheckAnswer {
  readonly failure: Failure | undefined;
}

interface Waiting {
  readonly check: LongCheck;
  readonly resolve: (failure: Failure | undefined) => void;
  readonly reject: (error: EvregError) => void;
}

/** A thread without work ends after that long: few servers ever need one. */
const IDLE_MS = 10_000;

/**
 * A thread that checks payloads, in the order of asking, started when there is one to be checked. It is given one at a
 * time, so that its end can fail no more than that one. What waits belongs to requests, whose number and bytes are bounded.
 */
export class CheckThread {
  readonly #clock: Clock;
  readonly #waiting: Waiting[] = [];
  #thread: Worker | undefined;
  #underWay: Waiting | undefined;
  #cancelEnd: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Why the payload does not conform, or `undefined` when it does.
   * @throws EvregError `unavailable` when the thread ended meanwhile
   */
  check(check: LongCheck): Promise<Failure | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ check, resolve, reject });
      if (this.#underWay === undefined) this.#next();
    });
  }

  #next(): void {
    this.#underWay = this.#waiting.shift();
    if (this.#underWay === undefined) return this.#rest();
    this.#cancelEnd?.();
    const { check } = this.#underWay;
    const thread = (this.#thread ??= this.#start());
    // The process stays for an answer, and not for a thread that has nothing to do.
    thread.ref();
    thread.postMessage(check, [check.payload.buffer]);
  }

  #rest(): void {
    const thread = this.#thread;
    thread?.unref();
    this.#cancelEnd = this.#clock.setTimer(() => {
      this.#thread = undefined;
      void thread?.terminate();
    }, IDLE_MS);
  }

  #start(): Worker {
    const thread = startThread({ name: "evreg-check", inside: CHECK_THREAD, module: workerModule });
    let reason = "it ended without being told to";
    thread.on("message", ({ failure }: LongCheckAnswer) => {
      this.#underWay?.resolve(failure);
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
    import.meta.url.endsWith(".ts") ? "./check-worker.ts" : "./check-worker.js",
    import.meta.url,
  );
}

function ended(reason: string): EvregError {
  return new EvregError(
    "unavailable",
    `The payload could not be checked, as the thread that does it failed: ${reason}. Nothing was stored; try again.`,
  );
}
