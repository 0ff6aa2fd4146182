import { EvregError, messageOf } from "../../../domain/error.ts";
import type { FILE_TASKS, FileTask } from "../operations.ts";
import { fromWireError, type Sequences, type WireOutcome } from "../thread/protocol.ts";
import type { FileId } from "../thread/file-guard.ts";
import { storeThread } from "../thread/store-threads.ts";
import type { Examined, ExamineOptions } from "./closed-file.ts";

export type { FileFacts } from "./closed-file.ts";

// What is done with a data file, or a copy of one, that this process does not have open: each in a thread of its own.

/** See `examineFile` in `closed-file.ts`. */
export async function checkFile(path: string, options: ExamineOptions = {}): Promise<Examined> {
  return (await inThread({ run: "examineFile", args: [path, options] }, options.name)) as Examined;
}

/** See `closed-file.ts`. */
export async function settleFile(path: string): Promise<Sequences> {
  return (await inThread({ run: "settleFile", args: [path] })) as Sequences;
}

/** See `copied-log.ts`. */
export async function addLog(path: string, copy: number): Promise<number> {
  return (await inThread({ run: "addLog", args: [path, copy] })) as number;
}

/** See `copied-log.ts`. */
export async function moveLog(path: string, file: FileId): Promise<void> {
  await inThread({ run: "moveLog", args: [path, file] });
}

/** See `id-reservation.ts`. */
export async function moveNumbers(...args: Parameters<typeof FILE_TASKS.moveNumbers>): Promise<Sequences> {
  return (await inThread({ run: "moveNumbers", args })) as Sequences;
}

/** Resolves once the thread has ended: only then are the file, and what the engine put beside it, let go of. */
function inThread(task: FileTask, name: string = task.args[0]): Promise<unknown> {
  const thread = storeThread(task);
  return new Promise((resolve, reject) => {
    let outcome: WireOutcome | undefined;
    thread.on("message", (message: WireOutcome) => (outcome = message));
    thread.on("error", (cause) => {
      // That says nothing of the file: the engine may not be there to be loaded.
      const message = `${name} could not be looked at: the store's thread failed: ${messageOf(cause)}.`;
      reject(new EvregError("unavailable", message, {}, { cause }));
    });
    thread.on("exit", () => {
      if (outcome === undefined) reject(new Error("a thread of the store ended without an answer"));
      else if ("error" in outcome) reject(fromWireError(outcome.error));
      else resolve(outcome.ok);
    });
  });
}
