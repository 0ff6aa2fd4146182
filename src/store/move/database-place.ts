import { randomUUID } from "node:crypto";
import { EvregError } from "../../domain/error.ts";
import { fileTimestamp } from "../../runtime/clock.ts";
import { DatabaseConnection, type DatabaseSetup } from "../postgres/connection.ts";
import { ARRIVING, LAST_MOVED, makeTables, movedSchema } from "../postgres/make-tables.ts";
import { IS_LIVING } from "../postgres/nodes.ts";
import { FORM, SCHEMA } from "../postgres/tables.ts";
import type { Sql } from "../sql/sql.ts";
import { keysOf, linesIn, MOVED_TABLES } from "./moved-tables.ts";
import {
  identify,
  type MoveEngine,
  mustBeBegun,
  type OpenSource,
  type OpenTarget,
  type SourceFacts,
} from "./pass.ts";

/** The longest that a statement may take, such as one that counts all events. */
const STATEMENT_TIMEOUT_MS = 600_000;
/** Publishing is stopped while a move waits for others to end their transactions. */
const LOCK_TIMEOUT_MS = 10_000;

const engine: MoveEngine = {
  checksum(sql, table, range) {
    const order = table.key.join(", ");
    return Promise.resolve(
      sql.value(
        `SELECT encode(sha256(convert_to(coalesce(string_agg(line, '' ORDER BY ${order}), ''), 'UTF8')), 'hex')
          FROM (${linesIn(table, range)}) AS lines`,
        ...keysOf(range),
      ),
    );
  },
  lastNumber(sql, table) {
    return Promise.resolve(
      sql.value(
        `SELECT coalesce((SELECT seq FROM last_number WHERE name = ?1),
          (SELECT last_value FROM pg_sequences WHERE schemaname = current_schema() AND sequencename = ?1 || '_rowid_seq'), 0)`,
        table,
      ),
    );
  },
  async setLastNumber(sql, { name }, last) {
    await sql.run("UPDATE last_number SET seq = ?2 WHERE name = ?1", name, last);
    await sql.run("SELECT setval(pg_get_serial_sequence(?1, 'rowid'), greatest(?2, 1), ?2 > 0)", name, last);
  },
};

function setupFor(url: string, schema: string): DatabaseSetup {
  return { url, schema, statementTimeoutMs: STATEMENT_TIMEOUT_MS };
}

async function withConnection<T>(
  url: string,
  schema: string,
  act: (connection: DatabaseConnection) => Promise<T>,
): Promise<T> {
  const connection = new DatabaseConnection(setupFor(url, schema));
  try {
    return await act(connection);
  } finally {
    await connection.close();
  }
}

/** Answers the schema that the database has data in: that of servers or, where a move was cut off at its very end, the one moved. */
async function schemaOf(sql: Sql): Promise<string | undefined> {
  const schema = await sql.value<string | null>(
    `SELECT CASE WHEN to_regclass('${SCHEMA}.turn') IS NOT NULL THEN '${SCHEMA}' ELSE ${LAST_MOVED} END`,
  );
  return schema ?? undefined;
}

/** @param where what messages call it: the address without a password */
export async function fromDatabase<T>(
  url: string,
  where: string,
  act: (source: OpenSource) => Promise<T>,
): Promise<T> {
  const place = await withConnection(url, SCHEMA, (connection) =>
    connection.committed("BEGIN READ ONLY", async (sql) => {
      // Where there is no such schema, nothing in it is looked at.
      const schema = await schemaOf(sql);
      return schema === undefined
        ? undefined
        : { schema, isLive: schema === SCHEMA && (await isServed(sql)) };
    }),
  );
  if (place === undefined) throw new EvregError("not_found", `The database ${where} holds no data of evreg.`);
  const { schema, isLive } = place;
  return await withConnection(url, schema, (connection) => {
    const begin = `BEGIN ISOLATION LEVEL REPEATABLE READ${isLive ? " READ ONLY" : ""}`;
    return connection.committed(begin, async (sql) => {
      await sql.run("SET LOCAL idle_in_transaction_session_timeout = 0");
      if (!isLive) await lockAll(sql, where);
      const form = await sql.value<number>("SELECT form FROM turn");
      if (form !== FORM) {
        const message = `The database ${where} has evreg's tables in form ${form}, and this evreg moves form ${FORM} alone. Use the evreg that wrote it.`;
        throw new EvregError("usage", message);
      }
      const kept = schema === SCHEMA ? undefined : schema;
      const leave = async (): Promise<string> => {
        if (kept !== undefined) return kept;
        const moved = movedSchema(fileTimestamp(Date.now()));
        await sql.run(`ALTER SCHEMA ${SCHEMA} RENAME TO ${moved}`);
        return moved;
      };
      const dataId = await sql.value<string>("SELECT id FROM data_identity");
      return await act({ engine, sql, dataId, isAtRest: !isLive, kept, leave });
    });
  });
}

/** Whether a node has the database, or had it a moment ago. */
async function isServed(sql: Sql): Promise<boolean> {
  return (await sql.value<0 | 1>(`SELECT EXISTS (SELECT 1 FROM node WHERE ${IS_LIVING})`)) === 1;
}

/** Keeps everybody from writing until the transaction ends; before its first query, so that this one sees what is then there. */
async function lockAll(sql: Sql, where: string): Promise<void> {
  const tables = ["turn", "node", ...MOVED_TABLES.map(({ name }) => name)];
  await sql.run(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
  await sql.run(`LOCK TABLE ${tables.join(", ")} IN SHARE MODE`);
  if (!(await isServed(sql))) return;
  throw new EvregError("conflict", `A server on the database ${where} has just started. Run this again.`);
}

export async function toDatabase(url: string, where: string, source: SourceFacts): Promise<OpenTarget> {
  await withConnection(url, SCHEMA, (connection) =>
    connection.committed("BEGIN", async (sql) => {
      const begun = await sql.value<string | null>(`SELECT to_regnamespace('${ARRIVING}')::text`);
      mustBeBegun(begun !== null, source, `the database ${where}`);
      if ((await sql.value<string | null>(`SELECT to_regclass('${SCHEMA}.turn')::text`)) !== null) {
        const message = `The database ${where} has data of evreg already, which a move leaves alone. Name another with --to.`;
        throw new EvregError("conflict", message);
      }
      // One that is empty, which may have been made for evreg, makes room for the one that arrives.
      await sql.run(`DROP SCHEMA IF EXISTS ${SCHEMA}`);
    }),
  );
  await makeTables(setupFor(url, ARRIVING));
  const connection = new DatabaseConnection(setupFor(url, ARRIVING));
  try {
    const alone = await takeOver(connection, where, source);
    return {
      where,
      engine,
      transaction: (work) =>
        alone(async (sql) => {
          // The last transaction waits for the disk, and with it all before it.
          await sql.run("SET LOCAL synchronous_commit = off");
          return await work(sql);
        }),
      arrive: () =>
        alone(async (sql) => {
          await sql.run("DELETE FROM node");
          await sql.run(`ALTER SCHEMA ${ARRIVING} RENAME TO ${SCHEMA}`);
        }),
      close: () => connection.close(),
    };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/**
 * Makes this move the only one that writes to its target. Another move, which may have been killed, ends with its next
 * transaction.
 * @returns does something in a transaction
 */
async function takeOver(
  connection: DatabaseConnection,
  where: string,
  { dataId }: SourceFacts,
): Promise<OpenTarget["transaction"]> {
  const mover = randomUUID();
  await connection.committed("BEGIN", async (sql) => {
    // This waits for the transaction that another one has under way.
    await sql.run("LOCK TABLE node IN EXCLUSIVE MODE");
    await identify(sql, dataId, `the database ${where}`, `run DROP SCHEMA ${ARRIVING} CASCADE there`);
    await sql.run("DELETE FROM node");
    const insert =
      "INSERT INTO node (id, owner, serves, until, seen) VALUES (?, '{}', 0, clock_timestamp(), 0)";
    await sql.run(insert, mover);
  });
  return (work) =>
    connection.committed("BEGIN", async (sql) => {
      if ((await sql.first("SELECT id FROM node WHERE id = ? FOR UPDATE", mover)) === undefined) {
        const message = `Another move into the database ${where} was begun since, and goes on in the place of this one.`;
        throw new EvregError("conflict", message);
      }
      return await work(sql);
    });
}
