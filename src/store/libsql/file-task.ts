import { EvregError } from "../../domain/error.ts";
import { EngineFailure } from "../sql/sql.ts";
import { StoreThread } from "../thread/store-threads.ts";
import type { FileTasks } from "./worker.ts";

/**
 * Does something with a data file, or a copy of one, in a thread of its own: see `FileTasks`, of which most
 * need a file that this process does not have open. Resolves once the thread has ended: only then are the file, and what the
 * engine put beside it, let go of.
 */
export async function fileTask<K extends keyof FileTasks>(
  run: K,
  ...args: Parameters<FileTasks[K]>
): Promise<Awaited<ReturnType<FileTasks[K]>>> {
  const thread = new StoreThread("store-thread");
  try {
    return (await thread.request("task", { operation: run, args })) as Awaited<ReturnType<FileTasks[K]>>;
  } catch (error) {
    if (!(error instanceof EngineFailure)) throw error;
    // Where the thread itself failed, that says nothing of the file: the engine may not be there to be loaded.
    const what = `${args[0]} could not be looked at: ${error.message}.`;
    throw new EvregError("unavailable", what, {}, { cause: error });
  } finally {
    await thread.close();
  }
}
