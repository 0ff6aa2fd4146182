import { setTimeout as pause } from "node:timers/promises";
import { EvregError } from "../../domain/error.ts";
import { readOwner } from "../../runtime/owner-file.ts";
import { systemRandom } from "../../runtime/random.ts";
import { fromWireError } from "./messages.ts";
import { type WorkerHost, WorkerRefused } from "./worker-host.ts";
import { inUse } from "./data-folder.ts";

/** Two first starts at the same moment may refuse each other; the one with the shorter pause then gets in. */
const TRIES = 4;
const LONGEST_PAUSE_MS = 80;

/**
 * Starts the worker, which takes the file's lock.
 * @throws EvregError `conflict` naming the owner when another process has it; `unavailable` when the engine cannot open it
 */
export async function startAlone(folder: string, start: () => Promise<WorkerHost>): Promise<WorkerHost> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof WorkerRefused)) throw error;
      const { refusal } = error;
      if (!("failure" in refusal)) throw fromWireError(refusal);
      if (refusal.failure !== "in_use") {
        throw new EvregError(
          "unavailable",
          `The data folder ${folder} cannot be opened: ${refusal.reason}.`,
          { folder },
          { cause: error },
        );
      }
      if (tries === TRIES || ownerLives(folder)) throw inUse(folder);
      await pause(systemRandom.fraction() * LONGEST_PAUSE_MS);
    }
  }
}

function ownerLives(folder: string): boolean {
  const owner = readOwner(folder);
  if (owner === undefined) return false;
  try {
    process.kill(owner.pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
