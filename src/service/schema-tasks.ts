import {
  payloadTypeWarnings,
  type SchemaHolder,
  type Schemata,
  type SchemaWarning,
} from "../domain/action.ts";
import { EvregError } from "../domain/error.ts";
import { CallerLine } from "../runtime/fair-queue.ts";
import { checkingSchema } from "../schema/check.ts";
import type { Steps, Yielder } from "../runtime/yielding.ts";

/** Tasks under way at a time. They share one thread, so that with more each would only take longer and hold memory meanwhile. */
const AT_ONCE = 2;
/**
 * Tasks of a kind that wait for one caller before no further request of it is let in; of GitHub's largest schemas they take
 * some ten seconds.
 */
const MOST_WAITING = 64;

/** What a request that brings a schema wants: to change something with it, or only to know. */
type SchemaPurpose = "change" | "check";

/** The part of the work that one request asks for. */
export interface SchemaTurns {
  /**
   * The first task of the request.
   * @throws `unavailable` when too many of the caller's wait
   */
  begin<T>(task: Steps<T>): Promise<T>;
  /** A further task of a request that was let in: its turn comes after those of its kind and caller that wait. */
  goOn<T>(task: Steps<T>): Promise<T>;
}

interface Line {
  readonly waiting: CallerLine<() => void>;
  underWay: number;
}

/**
 * Checks and comparisons of schemas that requests ask for: a few at a time. Changes and checks wait in a line each, of
 * which the one with less under way is next: whoever may only read cannot keep those waiting who write, however much is
 * asked for. In each line the callers take turns, so that nobody waits for all that another has asked for.
 */
export class SchemaWork {
  readonly #yielder: Pick<Yielder, "run">;
  readonly #lines: Readonly<Record<SchemaPurpose, Line>> = {
    change: { waiting: new CallerLine(), underWay: 0 },
    check: { waiting: new CallerLine(), underWay: 0 },
  };

  /** @param yielder shares the thread with what else runs long on it */
  constructor(yielder: Pick<Yielder, "run">) {
    this.#yielder = yielder;
  }

  /**
   * @param caller whose turns these are: the same object for the same caller
   * @param signal ends its tasks, those that wait and the one under way; they reject with its reason
   */
  for(purpose: SchemaPurpose, caller: object, signal?: AbortSignal): SchemaTurns {
    const line = this.#lines[purpose];
    const goOn = async <T>(task: Steps<T>): Promise<T> => {
      signal?.throwIfAborted();
      if (this.#lines.change.underWay + this.#lines.check.underWay < AT_ONCE) line.underWay += 1;
      else await turnIn(line, caller, signal);
      try {
        return await this.#yielder.run(signal === undefined ? task : until(signal, task));
      } finally {
        line.underWay -= 1;
        this.#letNextIn();
      }
    };
    return {
      goOn,
      async begin(task) {
        if (line.waiting.countOf(caller) < MOST_WAITING) return goOn(task);
        const message =
          "Too many schemas that you sent wait to be checked or compared. Nothing was changed; try again in some seconds.";
        throw new EvregError("unavailable", message);
      },
    };
  }

  #letNextIn(): void {
    const { change, check } = this.#lines;
    const lines = change.underWay <= check.underWay ? [change, check] : [check, change];
    const line = lines.find(({ waiting }) => !waiting.isEmpty);
    if (line === undefined) return;
    line.underWay += 1;
    line.waiting.next()!();
  }
}

function turnIn({ waiting }: Line, caller: object, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const letIn = (): void => {
      signal?.removeEventListener("abort", leave);
      resolve();
    };
    const leave = (): void => {
      waiting.remove(caller, letIn);
      reject(signal!.reason as Error);
    };
    signal?.addEventListener("abort", leave, { once: true });
    waiting.add(caller, letIn);
  });
}

function* until<T>(signal: AbortSignal, task: Steps<T>): Steps<T> {
  for (;;) {
    signal.throwIfAborted();
    const { done, value } = task.next();
    if (done === true) return value;
    yield;
  }
}

/**
 * What is legal in a schema and is probably a slip.
 * @throws `invalid` for what is no schema, with the place in that member
 * @throws `unavailable` when too many schemas wait to be looked at
 */
export async function schemaWarnings(
  turns: SchemaTurns,
  member: SchemaHolder,
  schemata: Schemata,
): Promise<SchemaWarning[]> {
  const { warnings } = await turns.begin(checkingSchema(schemata, member));
  return [...payloadTypeWarnings(schemata, member), ...warnings];
}
