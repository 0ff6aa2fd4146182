import { EvregError } from "../../domain/error.ts";
import { Connection } from "./connection.ts";
import { EngineFailure } from "./engine-failure.ts";
import { loadSequences } from "./number-gap.ts";
import type { FileSettling, Sequences } from "./messages.ts";

/**
 * Answers what its numbers have come to.
 * @throws EvregError `conflict` when another process has it, `unavailable` when it cannot be done
 */
export function settleFile({ settle: path }: FileSettling): Sequences {
  try {
    const connection = Connection.open(path, () => undefined);
    try {
      connection.checkpoint();
      return loadSequences(connection.read);
    } finally {
      connection.close();
    }
  } catch (error) {
    if (!(error instanceof EngineFailure)) throw error;
    const code = error.kind === "in_use" ? "conflict" : "unavailable";
    throw new EvregError(code, `The log of ${path} cannot be moved into it: ${error.message}.`);
  }
}
