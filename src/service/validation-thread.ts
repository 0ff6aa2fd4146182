import type { Worker } from "node:worker_threads";
import { EvregError, messageOf } from "../domain/error.ts";
import type { Clock } from "../runtime/clock.ts";
import { startThread } from "../runtime/process.ts";
import type {
  OffThreadCheck,
  OffThreadResult,
  ValidationCaller,
  OffThreadValidator,
} from "../schema/validate/compile.ts";
import { CallerTurns } from "./caller-turns.ts";
import type { ThreadWork } from "./validation-worker.ts";

/** The thread ends after so long without work: few servers ever need it. */
const IDLE_MS = 10_000;
/** Checks of one caller that may wait. Their payloads count among the bodies that a server holds. */
const MAX_CHECKS_WAITING = 2_000;
/** Tasks of one caller that may wait and take a second or two in the worst case. */
const MAX_PRODUCTS_WAITING = 64;

/**
 * Validates payloads on a thread of its own, which is started for the first of them; or compares schemas there, and makes
 * samples. It gets one task at a time, so that its end fails no other, and callers take turns. Not by piscina,
 * which starts its workers from a file of its own: the single executable has none.
 */
export class ValidationThread implements OffThreadValidator {
  readonly #clock: Clock;
  readonly #turns = new CallerTurns({ atOnce: 1, maxWaiting: MAX_PRODUCTS_WAITING });
  #thread: Worker | undefined;
  #running: PromiseWithResolvers<unknown> | undefined;
  #cancelEnd: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  check(
    { schemata, payload, maxSteps, maxFailures = 1 }: OffThreadCheck,
    { caller, gone: signal, maxWaiting = MAX_CHECKS_WAITING }: ValidationCaller,
  ): Promise<OffThreadResult> {
    const work = (): Promise<OffThreadResult> => {
      const copy = new Uint8Array(payload);
      const text = JSON.stringify(schemata);
      return this.#answerTo("check", { schemata: text, payload: copy, maxSteps, maxFailures }, [copy.buffer]);
    };
    return this.#turns.run(caller, work, { signal, maxWaiting });
  }

  /**
   * Makes something of schemas that were checked. It takes milliseconds, and in the worst case some two seconds.
   * @param signal takes the task out of the queue
   * @throws EvregError `unavailable` when too many of the caller's wait, or the thread failed
   */
  make<K extends "comparison" | "sample">(
    kind: K,
    task: Parameters<ThreadWork[K]>[0],
    caller: unknown,
    signal?: AbortSignal,
  ): Promise<ReturnType<ThreadWork[K]>> {
    return this.#turns.run(caller, () => this.#answerTo(kind, task), { signal });
  }

  #answerTo<K extends keyof ThreadWork>(
    kind: K,
    task: Parameters<ThreadWork[K]>[0],
    moved: ArrayBuffer[] = [],
  ): Promise<ReturnType<ThreadWork[K]>> {
    this.#cancelEnd();
    const thread = (this.#thread ??= this.#start());
    // The process waits for an answer, and not for an idle thread.
    thread.ref();
    this.#running = Promise.withResolvers<unknown>();
    thread.postMessage({ kind, task }, moved);
    const answer = this.#running.promise as Promise<ReturnType<ThreadWork[K]>>;
    return answer.finally(() => this.#endWhenIdle());
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
    thread.on("message", (answer: unknown) => this.#running?.resolve(answer));
    thread.on("error", (error) => (reason = messageOf(error)));
    thread.on("exit", () => {
      if (this.#thread !== thread) return;
      this.#thread = undefined;
      this.#running?.reject(threadFailed(reason));
    });
    return thread;
  }
}

function threadFailed(reason: string): EvregError {
  return new EvregError(
    "unavailable",
    `This could not be done, as the thread that does it failed: ${reason}. Nothing was stored; try again.`,
  );
}
