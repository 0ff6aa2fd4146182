import { EvregError, messageOf } from "../../../domain/error.ts";
import type { FILE_TASKS } from "../operations.ts";
import { fromWireError, type WireOutcome } from "../thread/protocol.ts";
import { storeThread } from "../thread/store-threads.ts";
import type { Examined, ExamineOptions } from "./closed-file.ts";

type Tasks = typeof FILE_TASKS;

/**
 * Does something with a data file, or a copy of one, in a thread of its own: see the functions in `FILE_TASKS`, of which most
 * need a file that this process does not have open. Resolves once the thread has ended: only then are the file, and what the
 * engine put beside it, let go of.
 */
export function fileTask<K extends keyof Tasks>(
  run: K,
  ...args: Parameters<Tasks[K]>
): Promise<ReturnType<Tasks[K]>> {
  const thread = storeThread({ run, args });
  return new Promise((resolve, reject) => {
    let outcome: WireOutcome | undefined;
    thread.on("message", (message: WireOutcome) => (outcome = message));
    thread.on("error", (cause) => {
      // Such a failure says nothing of the file: the engine may not be there to be loaded.
      const message = `${args[0]} could not be looked at: the store's thread failed: ${messageOf(cause)}.`;
      reject(new EvregError("unavailable", message, {}, { cause }));
    });
    thread.on("exit", () => {
      if (outcome === undefined) reject(new Error("a thread of the store ended without an answer"));
      else if ("error" in outcome) reject(fromWireError(outcome.error));
      else resolve(outcome.ok as ReturnType<Tasks[K]>);
    });
  });
}

/** Examines a data file in a thread of its own; see `examineFile` in `closed-file.ts`. */
export function checkFile(path: string, options: ExamineOptions = {}): Promise<Examined> {
  return fileTask("examineFile", path, options);
}
