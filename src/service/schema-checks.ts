import type { Action, SchemaHolder, Schemata, SchemaWarning } from "../domain/action.ts";
import { eventLoop } from "../runtime/yielding.ts";
import { checkSchemaSteps } from "../schema/check.ts";
import { CallerTurns } from "./caller-turns.ts";

/** Checks schemas on this thread, in steps, a few side by side: a caller waits for no whole check of another. */
export class SchemaChecks {
  readonly #turns = new CallerTurns({
    // More at once would only take longer, and hold memory meanwhile.
    atOnce: 4,
    // So many of the largest schemas take some ten seconds.
    maxWaiting: 64,
  });

  /**
   * What is legal in a schema and is probably a mistake.
   * @param filtered the action whose payloads a filter is to choose from
   * @param signal ends the check, also when it has begun
   * @throws `invalid` for what is no schema; `unavailable` when too many schemas of the caller wait
   */
  async warnings(
    member: SchemaHolder,
    schemata: Schemata,
    caller: unknown,
    signal: AbortSignal | undefined,
    filtered?: Action,
  ): Promise<SchemaWarning[]> {
    const check = () => eventLoop.run(checkSchemaSteps(schemata, member, filtered), signal);
    const { warnings } = await this.#turns.run(caller, check, { signal });
    return warnings;
  }
}
