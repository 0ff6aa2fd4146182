import type { Client } from "pg";
import { EvregError } from "../../domain/error.ts";
import { shellWord } from "../../domain/formats.ts";
import { SCHEMA } from "./tables.ts";

// The names of schemas say how far `evreg move` is: what is moved into a database becomes `evreg` only when all of it is there, and
// data that were moved away are in `evreg` no more.

/** The schema of what is being moved into the database. */
export const ARRIVING = `arriving_${SCHEMA}`;

/** How the name of a schema begins that was moved away; a time follows. */
const MOVED = `moved_${SCHEMA}_`;

export function movedSchema(timestamp: string): string {
  return `${MOVED}${timestamp.toLowerCase()}`;
}

/** SQL of the schema that was moved away last; NULL where none was. */
export const LAST_MOVED = `(SELECT max(nspname)::text FROM pg_namespace WHERE starts_with(nspname, '${MOVED}'))`;

/**
 * Refuses to make tables in a database where data are still arriving, or were moved away from.
 * @throws EvregError `unavailable` with what to do
 */
export async function mustNotBeMoved(client: Client): Promise<void> {
  const { rows } = await client.query<Record<"arriving" | "moved" | "folder", string | null>>(
    `SELECT to_regnamespace('${ARRIVING}')::text AS arriving, ${LAST_MOVED} AS moved,
        obj_description(to_regnamespace(${LAST_MOVED}), 'pg_namespace') AS folder`,
  );
  const { arriving, moved, folder } = rows[0]!;
  if (arriving !== null) {
    const message = `A move of data into this database has not ended. Run \`evreg move\` again, from where they come to this database: it goes on where it was. To give it up: DROP SCHEMA ${ARRIVING} CASCADE.`;
    throw new EvregError("unavailable", message);
  }
  if (moved === null) return;
  const [where, from] =
    folder === null ? ["a data folder", "FOLDER"] : [`the data folder ${folder}`, shellWord(folder)];
  const message = `The data of this database were moved into ${where} by \`evreg move\`, so nothing is served from here: use that folder, or move the data back with \`evreg move --from ${from}\`. To give up all that was stored since: ALTER SCHEMA ${moved} RENAME TO ${SCHEMA}; numbers of events are then given a second time.`;
  throw new EvregError("unavailable", message, { moved });
}
