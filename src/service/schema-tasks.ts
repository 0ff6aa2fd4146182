import {
  payloadTypeWarnings,
  type SchemaHolder,
  type Schemata,
  type SchemaWarning,
} from "../domain/action.ts";
import { EvregError } from "../domain/error.ts";
import { FairQueue } from "../runtime/fair-queue.ts";
import type { Steps, Yielder } from "../runtime/yielding.ts";
import { checkSchemaSteps } from "../schema/check.ts";

/** They share one thread: with more at once each would only take longer, and hold memory meanwhile. */
const MAX_RUNNING = 2;
/** For each caller and purpose. Of GitHub's largest schemas so many take some ten seconds. */
const MAX_WAITING = 64;

/** What a request that brings a schema wants: to change something with it, or only to know. */
type SchemaPurpose = "change" | "check";

/** Runs the tasks of one request. */
export interface TaskRunner {
  /**
   * Runs a task in its caller's turn.
   * @throws `unavailable` for the request's first task, when too many of the caller's wait
   */
  run<T>(task: Steps<T>): Promise<T>;
}

interface TaskQueue {
  readonly waiting: FairQueue<() => void>;
  running: number;
}

/**
 * Checks and comparisons of schemas that requests ask for: a few at a time. Changes and checks have a queue each, of
 * which the one with fewer running tasks is next: those who may only read cannot keep writers waiting, however much
 * they ask for.
 */
export class SchemaTasks {
  readonly #yielder: Pick<Yielder, "run">;
  readonly #change: TaskQueue = { waiting: new FairQueue(), running: 0 };
  readonly #check: TaskQueue = { waiting: new FairQueue(), running: 0 };

  constructor(yielder: Pick<Yielder, "run">) {
    this.#yielder = yielder;
  }

  /**
   * @param caller the same object for the same caller
   * @param signal ends the request's tasks, those that wait and the running one; they reject with its reason
   */
  runnerFor(purpose: SchemaPurpose, caller: object, signal?: AbortSignal): TaskRunner {
    const queue = purpose === "change" ? this.#change : this.#check;
    let isAdmitted = false;
    return {
      run: async (task) => {
        signal?.throwIfAborted();
        if (!isAdmitted && queue.waiting.countOf(caller) >= MAX_WAITING) throw tooManyWaiting();
        isAdmitted = true;
        const turn = this.#turnIn(queue, caller, signal);
        if (turn !== undefined) await turn;
        try {
          return await this.#yielder.run(task, signal);
        } finally {
          queue.running -= 1;
          this.#startNext();
        }
      },
    };
  }

  #turnIn(queue: TaskQueue, caller: object, signal: AbortSignal | undefined): Promise<void> | undefined {
    if (this.#change.running + this.#check.running < MAX_RUNNING) {
      queue.running += 1;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      queue.waiting.push(caller, resolve, signal && { signal, onAbort: reject });
    });
  }

  #startNext(): void {
    const [change, check] = [this.#change, this.#check];
    const queues = change.running <= check.running ? [change, check] : [check, change];
    const queue = queues.find(({ waiting }) => !waiting.isEmpty);
    if (queue === undefined) return;
    queue.running += 1;
    queue.waiting.next()!();
  }
}

function tooManyWaiting(): EvregError {
  return new EvregError(
    "unavailable",
    "Too many schemas that you sent wait to be checked or compared. Nothing was changed; try again in some seconds.",
  );
}

/**
 * What is legal in a schema and is probably a slip.
 * @throws `invalid` for what is no schema, with the place in that member
 * @throws `unavailable` when too many schemas wait to be checked
 */
export async function schemaWarnings(
  tasks: TaskRunner,
  member: SchemaHolder,
  schemata: Schemata,
): Promise<SchemaWarning[]> {
  const { warnings } = await tasks.run(checkSchemaSteps(schemata, member));
  return [...payloadTypeWarnings(schemata, member), ...warnings];
}
