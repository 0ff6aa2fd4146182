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

/** Tasks share one thread: more at once would only take longer, and hold memory meanwhile. */
const MAX_RUNNING = 4;
/** For each caller. So many of the largest schemas take some ten seconds. */
const MAX_WAITING = 64;

/** Runs the tasks of one request. */
export interface TaskRunner {
  /**
   * Runs a task in its caller's turn.
   * @throws `unavailable` for the request's first task, when too many of the caller's wait
   */
  run<T>(task: Steps<T>): Promise<T>;
}

interface WaitingTask {
  readonly caller: unknown;
  begin(): void;
}

/**
 * Runs checks and comparisons of schemas in rotation over their callers, a few side by side and one of each caller, so that no
 * caller waits for a whole task of another while few are at work.
 */
export class SchemaTasks {
  readonly #yielder: Pick<Yielder, "run">;
  readonly #waiting = new FairQueue<WaitingTask>();
  /** The callers that have a running task. */
  readonly #served = new Set<unknown>();

  constructor(yielder: Pick<Yielder, "run">) {
    this.#yielder = yielder;
  }

  /**
   * @param caller the same value for the same caller
   * @param signal ends the request's tasks, those that wait and the running one; they reject with its reason
   */
  runnerFor(caller: unknown, signal?: AbortSignal): TaskRunner {
    let isAdmitted = false;
    return {
      run: async (task) => {
        signal?.throwIfAborted();
        if (!isAdmitted && this.#waiting.itemsOf(caller).length >= MAX_WAITING) throw tooManyWaiting();
        isAdmitted = true;
        const turn = turnIn(this.#waiting, caller, signal);
        this.#startWaiting();
        await turn;
        try {
          return await this.#yielder.run(task, signal);
        } finally {
          this.#served.delete(caller);
          this.#startWaiting();
        }
      },
    };
  }

  #startWaiting(): void {
    while (this.#served.size < MAX_RUNNING) {
      const next = this.#waiting.next((caller) => !this.#served.has(caller));
      if (next === undefined) return;
      this.#served.add(next.caller);
      next.begin();
    }
  }
}

/** Rejects with the signal's reason when that is aborted before it is the caller's turn. */
function turnIn(waiting: FairQueue<WaitingTask>, caller: unknown, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const begin = (): void => {
      signal?.removeEventListener("abort", leave);
      resolve();
    };
    const leave = (): void => {
      leaveQueue();
      reject(signal!.reason as Error);
    };
    const leaveQueue = waiting.push(caller, { caller, begin });
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
