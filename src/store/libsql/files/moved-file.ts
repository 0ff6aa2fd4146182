import { readdirSync } from "node:fs";
import { join } from "node:path";
import { EvregError } from "../../../domain/error.ts";
import { shellWord } from "../../../domain/formats.ts";
import { DATA_FILE } from "../../../runtime/data-files.ts";

// The names of a data file say how far `evreg move` is, so that nothing else need know: what is moved into a folder becomes its
// data file only when all of it is there, and a data file that was moved away is one no more.

/** Where a folder has what is being moved into it. */
export function arrivingFile(folder: string): string {
  return join(folder, `${DATA_FILE}.arriving`);
}

/** How the name of a data file begins that was moved away; a time follows. */
const MOVED = `${DATA_FILE}.moved-`;

export function movedFile(folder: string, timestamp: string): string {
  return join(folder, `${MOVED}${timestamp}`);
}

/** The data file of the folder that was moved away last. */
export function lastMovedFile(folder: string): string | undefined {
  const name = readdirSync(folder)
    .filter((one) => one.startsWith(MOVED) && !one.endsWith("-journal"))
    .toSorted()
    .at(-1);
  return name === undefined ? undefined : join(folder, name);
}

/**
 * Refuses to make data in a folder where they are still arriving, or were moved away from.
 * @throws EvregError `unavailable` with what to do
 */
export function mustNotBeMoved(folder: string): void {
  const names = readdirSync(folder);
  if (names.includes(`${DATA_FILE}.arriving`)) {
    const message = `A move of data into the folder ${folder} has not ended. Run \`evreg move\` again, from where they come to ${shellWord(folder)}: it goes on where it was. To give it up, remove ${arrivingFile(folder)} and what is beside it under that name.`;
    throw new EvregError("unavailable", message, { folder });
  }
  const moved = lastMovedFile(folder);
  if (moved === undefined) return;
  const message = `The data of the folder ${folder} were moved into a database by \`evreg move\`, so nothing is served from here: use that database (EVREG_DATABASE_URL), or move the data back with \`evreg move --to ${shellWord(folder)}\`. To give up all that was stored since, rename ${moved} to ${DATA_FILE}; numbers of events are then given a second time.`;
  throw new EvregError("unavailable", message, { folder, moved });
}
