import type { PoolClient } from "pg";
import { EvregError, messageOf } from "../../domain/error.ts";
import { EngineFailure } from "../sql/sql.ts";
import { DatabaseConnection, type DatabaseSetup } from "./connection.ts";
import { END_DEAD } from "./nodes.ts";
import { FORM, MAKE, NEWEST_FORM, SCHEMA, STEPS } from "./tables.ts";

const OLDEST_SERVER = 140_000;

/** Nobody waits longer for a start that changes the tables, which then ends. */
const LOCK_TIMEOUT_MS = 3_000;

/**
 * Makes evreg's tables where there are none, or brings older ones to this evreg's form, in one transaction.
 * @param needsData whether a database without them is refused, and one of an older form, and left as it is
 * @throws EvregError `usage` for a database that evreg cannot use, `not_found` for one without data; EngineFailure
 */
export async function makeTables(setup: DatabaseSetup, needsData = false): Promise<void> {
  const connection = new DatabaseConnection(setup);
  try {
    await connection.transaction("BEGIN", (client) => makeIn(client, setup.schema ?? SCHEMA, needsData));
  } catch (error) {
    if (error instanceof EvregError || error instanceof EngineFailure) throw error;
    // Such as a setting in the address that the driver or the database does not know.
    throw new EvregError("usage", `The database cannot be used: ${messageOf(error)}.`, {}, { cause: error });
  } finally {
    await connection.close();
  }
}

interface FoundTables {
  readonly server: number;
  readonly encoding: string;
  /** `null` where there is none. */
  readonly schema: string | null;
  readonly turn: string | null;
}

async function makeIn(client: PoolClient, name: string, needsData: boolean): Promise<void> {
  // The second of two who start at once finds what the first has made.
  await client.query(`SELECT pg_advisory_xact_lock(hashtext('${name}'))`);
  const { rows } = await client.query<FoundTables>(
    `SELECT current_setting('server_version_num')::int AS server, current_setting('server_encoding') AS encoding,
        to_regnamespace('${name}')::text AS schema, to_regclass('${name}.turn')::text AS turn`,
  );
  const { server, encoding, schema, turn } = rows[0]!;
  if (server < OLDEST_SERVER) {
    throw new EvregError("usage", "The database is older than PostgreSQL 14, which evreg needs.");
  }
  if (encoding !== "UTF8") {
    const message = `The database has the encoding ${encoding}, which cannot hold each text. Make one with ENCODING 'UTF8'.`;
    throw new EvregError("usage", message);
  }
  if (turn === null && name === SCHEMA) await mustNotBeMoved(client);
  if (turn === null && needsData) {
    throw new EvregError(
      "not_found",
      "The database holds no data of evreg yet, and was left as it is. To begin here, start a server with `evreg serve`.",
    );
  }
  if (schema === null) await client.query(`CREATE SCHEMA ${name}`);
  if (turn === null) await client.query(MAKE);
  const { rows: turns } = await client.query<{ form: number }>("SELECT form FROM turn");
  const form = turns[0]?.form ?? 0;
  if (form < FORM && needsData) {
    const message = `The database has evreg's tables in form ${form}. The start of a server brings them to form ${FORM}, which this evreg needs.`;
    throw new EvregError("usage", message);
  }
  if (form < FORM) await upgrade(client);
  if (form > NEWEST_FORM) {
    const message = `The database has evreg's tables in form ${form}, and this evreg knows them up to form ${NEWEST_FORM}. Use a newer one.`;
    throw new EvregError("usage", message);
  }
  await client.query("COMMIT");
}

/**
 * Brings the tables to the form of this evreg under the nodes that work on them, all of which have to know it.
 * @throws EvregError `usage` where one of them does not, or no step leads there
 */
async function upgrade(client: PoolClient): Promise<void> {
  await client.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
  // From here on all who write wait, and who begins to take part.
  const { rows: turns } = await client.query<{ form: number }>("SELECT form FROM turn FOR UPDATE");
  // One that stood still takes part again only by a transaction, which finds the new form.
  await client.query(END_DEAD);
  const { rows: nodes } = await client.query<{ version: string }>(
    `SELECT owner::jsonb ->> 'version' AS version FROM node
      WHERE ended IS NULL AND (owner::jsonb ->> 'newest_form')::bigint < ${FORM}`,
  );
  if (nodes.length > 0) {
    const versions = [...new Set(nodes.map(({ version }) => version))].join(", ");
    const message = `Nodes of version ${versions} have the database, which do not know the tables of this evreg. Start a version between the two in the place of each, then this one; or stop them all.`;
    throw new EvregError("usage", message);
  }
  for (let form = turns[0]!.form + 1; form <= FORM; form += 1) {
    const step = STEPS[form];
    if (step === undefined) {
      const message = `The database has evreg's tables in form ${form - 1}, which this evreg cannot bring to form ${form}. Start an older version on it once.`;
      throw new EvregError("usage", message);
    }
    await client.query(step);
  }
  await client.query(`UPDATE turn SET form = ${FORM}`);
}

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
async function mustNotBeMoved(client: PoolClient): Promise<void> {
  const { rows } = await client.query<Record<"arriving" | "moved", string | null>>(
    `SELECT to_regnamespace('${ARRIVING}')::text AS arriving, ${LAST_MOVED} AS moved`,
  );
  const { arriving, moved } = rows[0]!;
  if (arriving !== null) {
    const message = `A move of data into this database has not ended. Run \`evreg move\` again, from where they come to this database: it goes on where it was. To give it up: DROP SCHEMA ${ARRIVING} CASCADE.`;
    throw new EvregError("unavailable", message);
  }
  if (moved === null) return;
  const message = `The data of this database were moved into a data folder by \`evreg move\`, so nothing is served from here: use that folder, or move the data back with \`evreg move --from FOLDER\`. To give up all that was stored since: ALTER SCHEMA ${moved} RENAME TO ${SCHEMA}; numbers of events are then given a second time.`;
  throw new EvregError("unavailable", message, { moved });
}
