import { EvregError } from "../../domain/error.ts";
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
  let crash: string | undefined;
  const thread = new StoreThread("store-thread", { crashed: (reason) => (crash = reason) });
  try {
    return (await thread.request("task", { operation: run, args })) as Awaited<ReturnType<FileTasks[K]>>;
  } catch (cause) {
    if (crash === undefined) throw cause;
    // Such a failure says nothing of the file: the engine may not be there to be loaded.
    throw new EvregError("unavailable", `${args[0]} could not be looked at: ${crash}.`, {}, { cause });
  } finally {
    await thread.close();
  }
}
