import { Client } from "pg";
import { EvregError } from "../../domain/error.ts";
import { type DatabaseSetup } from "./connection.ts";
import { databaseFailure } from "./failure.ts";
import { FORM, MAKE, SCHEMA } from "./tables.ts";

const OLDEST_SERVER = 140_000;

/**
 * Makes evreg's tables where there are none, in one transaction.
 * @throws EvregError `usage` for a server that is too old, or tables of another form; EngineFailure
 */
export async function makeTables({ url }: DatabaseSetup): Promise<void> {
  const client = new Client({ connectionString: url, application_name: "evreg" });
  try {
    await client.connect();
    const { rows } = await client.query<{ server: number }>(
      "SELECT current_setting('server_version_num')::int AS server",
    );
    if (rows[0]!.server < OLDEST_SERVER) {
      throw new EvregError("usage", "The database must be PostgreSQL 14 or newer.");
    }
    await client.query("BEGIN");
    // Two who start at once make the schema one after the other; the second one finds the tables.
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${SCHEMA}`);
    await client.query(`SET LOCAL search_path = ${SCHEMA}, pg_catalog`);
    const made = await client.query("SELECT to_regclass('turn') AS name");
    if (made.rows[0].name === null) await client.query(MAKE);
    const { rows: turns } = await client.query<{ form: string }>("SELECT form FROM turn");
    const form = Number(turns[0]?.form);
    if (form !== FORM) {
      throw new EvregError(
        "usage",
        `The database has evreg's tables in form ${form}, and this evreg knows form ${FORM}. Use the evreg that wrote it, or a newer one.`,
      );
    }
    await client.query("COMMIT");
  } catch (error) {
    throw databaseFailure(error);
  } finally {
    await client.end().catch(() => undefined);
  }
}
