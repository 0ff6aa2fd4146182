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

/** They share one thread: more at once would only take longer, and hold memory meanwhile. */
const MAX_RUNNING = 2;
/** For each caller and purpose. So many of the largest schemas take some ten seconds. */
const MAX_WAITING = 64;

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
 * Runs checks and comparisons of schemas, a few at a time. Changes and checks have a queue each, and the one with fewer
 * running tasks is next, so that callers who may only read cannot keep writers waiting.
 */
export class SchemaTasks {
  readonly #yielder: Pick<Yielder, "run">;
  readonly #queues: Readonly<Record<SchemaPurpose, TaskQueue>> = {
    change: { waiting: new FairQueue(), running: 0 },
    check: { waiting: new FairQueue(), running: 0 },
  };

  constructor(yielder: Pick<Yielder, "run">) {
    this.#yielder = yielder;
  }

  /**
   * @param caller the same value for the same caller
   * @param signal ends the request's tasks, those that wait and the running one; they reject with its reason
   */
  runnerFor(purpose: SchemaPurpose, caller: unknown, signal?: AbortSignal): TaskRunner {
    const queue = this.#queues[purpose];
    let isAdmitted = false;
    return {
      run: async (task) => {
        signal?.throwIfAborted();
        if (!isAdmitted && queue.waiting.itemsOf(caller).length >= MAX_WAITING) throw tooManyWaiting();
        isAdmitted = true;
        if (this.#queues.change.running + this.#queues.check.running < MAX_RUNNING) queue.running += 1;
        else {
          await turnIn(queue.waiting, caller, signal);
        }
        try {
          return await this.#yielder.run(task, signal);
        } finally {
          queue.running -= 1;
          this.#startNext();
        }
      },
    };
  }

  #startNext(): void {
    const { change, check } = this.#queues;
    const queues = change.running <= check.running ? [change, check] : [check, change];
    const queue = queues.find(({ waiting }) => !waiting.isEmpty);
    if (queue === undefined) return;
    queue.running += 1;
    queue.waiting.next()!();
  }
}

/** Rejects with the signal's reason when that is aborted before it is the caller's turn. */
function turnIn(waiting: FairQueue<() => void>, caller: unknown, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const begin = (): void => {
      signal?.removeEventListener("abort", leave);
      resolve();
    };
    const leave = (): void => {
      leaveQueue();
      reject(signal!.reason as Error);
    };
    const leaveQueue = waiting.push(caller, begin);
    signal?.addEventListener("abort", leave);
  });
}

function tooManyWaiting(): EvregError {
  return new EvregError(
    "unavailable",
    "Too many schemas that you sent wait to be checked or compared. Nothing was changed; try again in some seconds.",
  );
}

/**
 * What is legal in a schema and is probably a mistake.
 * @throws `invalid` for what is no schema; `unavailable` when too many schemas wait to be checked
 */
export async function schemaWarnings(
  tasks: TaskRunner,
  member: SchemaHolder,
  schemata: Schemata,
): Promise<SchemaWarning[]> {
  const { warnings } = await tasks.run(checkSchemaSteps(schemata, member));
  return [...payloadTypeWarnings(schemata, member), ...warnings];
}
