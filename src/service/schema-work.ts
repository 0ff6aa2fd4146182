import { EvregError } from "../domain/error.ts";
import type { Pace } from "../runtime/pace.ts";
import type { Task } from "../schema/task.ts";

/** Tasks under way at a time. They share one thread, so that with more each would only take longer and hold memory meanwhile. */
const AT_ONCE = 2;
/** Tasks that wait before no request is let in any more; of GitHub's largest schemas they take some ten seconds. */
const MOST_WAITING = 64;

/** Checks and comparisons of schemas that requests ask for: a few at a time, in the order of asking. */
export class SchemaWork {
  readonly #pace: Pick<Pace, "walk">;
  readonly #waiting: (() => void)[] = [];
  #underWay = 0;

  /** @param pace shares the thread with what else runs long on it */
  constructor(pace: Pick<Pace, "walk">) {
    this.#pace = pace;
  }

  /**
   * The first task of a request.
   * @throws `unavailable` when too many wait
   */
  async begin<T>(task: Task<T>): Promise<T> {
    if (this.#waiting.length >= MOST_WAITING) {
      const message =
        "Too many schemas wait to be checked or compared. Nothing was changed; try again in some seconds.";
      throw new EvregError("unavailable", message);
    }
    return this.goOn(task);
  }

  /** A further task of a request that was let in: its turn comes after those that wait. */
  async goOn<T>(task: Task<T>): Promise<T> {
    if (this.#underWay < AT_ONCE) this.#underWay += 1;
    else {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
    try {
      return await this.#pace.walk(task);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#underWay -= 1;
      else next();
    }
  }
}
