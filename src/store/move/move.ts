import { messageOf } from "../../domain/error.ts";
import { commandFailure } from "../postgres/failure.ts";
import { EngineFailure } from "../sql/sql.ts";
import { StoreThread } from "../thread/store-threads.ts";
import { MoveProgress, type PassResult } from "./pass.ts";

export interface NamedPlace {
  /** The folder, the file of a backup, or the address of a database without what is secret in it. */
  readonly place: string;
  /** The address of a database; `undefined` for a folder or file. */
  readonly url?: string;
}

export interface MoveReport extends PassResult {
  readonly data_id: string;
  /** Whether the data are at their new place; if not, what has changed since is still to be moved. */
  readonly finished: boolean;
  /** The name under which the old place keeps them; `null` where the move is not finished. */
  readonly kept: string | null;
  readonly took_ms: number;
}

interface MoveRequest {
  readonly from: NamedPlace;
  readonly to: NamedPlace;
  /** Ends it before its next chunk; another one goes on from there. */
  readonly signal: AbortSignal;
  /** Called now and then. */
  readonly onProgress: (progress: Pick<MoveProgress, "rows" | "same">) => void;
}

const SHOW_EVERY_MS = 250;

/**
 * Moves all data from one place to another, where they get the same numbers and the same `data_id`; see `pass.ts`. Where a server
 * may go on meanwhile, it moves what there is, and is to be done again once that has stopped. It may be cut off anywhere, and is
 * then to be done again.
 * @throws EvregError `not_found` without data; `conflict` while a server has them, or where the new place has data or those of another
 * move; `usage` for data of another form; `unavailable` where one of the two cannot be read or written
 */
export async function move({ from, to, signal, onProgress }: MoveRequest): Promise<MoveReport> {
  const progress = new MoveProgress();
  const thread = new StoreThread("move-thread");
  const end = (): void => progress.end();
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  const timer = setInterval(() => onProgress(progress), SHOW_EVERY_MS);
  try {
    const args = [from, to, progress.memory];
    return (await thread.request("task", { operation: "moveData", args })) as MoveReport;
  } catch (error) {
    if (!(error instanceof EngineFailure)) throw error;
    const message = `The move cannot go on: ${messageOf(error)}. What is done stays done: solve that, and run it again.`;
    throw commandFailure(error, message);
  } finally {
    clearInterval(timer);
    signal.removeEventListener("abort", end);
    await thread.close();
  }
}
