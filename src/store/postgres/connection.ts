import { setTimeout as wait } from "node:timers/promises";
import { Client, type CustomTypesConfig, type QueryResult } from "pg";
import { type Durable, type Work, workOn } from "../sql/operation.ts";
import { checkText, EngineFailure, type Sql, type SqlValue } from "../sql/sql.ts";
import type { ReaderConnection, WriterConnection } from "../thread/worker.ts";
import { parameterType, translated, type Translated } from "./dialect.ts";
import { databaseFailure, isLost } from "./failure.ts";
import { SCHEMA } from "./tables.ts";

/** What a connection is made with. */
export interface DatabaseSetup {
  /** The address, with its user and password. */
  readonly url: string;
  /** The longest that a statement may take. */
  readonly statementTimeoutMs: number;
}

export const CONNECT_TIMEOUT_MS = 5_000;
/** After so long without a sign of life, the system asks whether the other end is there. */
const KEEP_ALIVE_MS = 5_000;

/** The numbers of types. */
const TYPE = { bool: 16, bytea: 17, int8: 20, int4: 23, numeric: 1700, json: 114 } as const;

/** Columns come as the embedded engine has them: numbers, texts, BLOBs as ArrayBuffers, and 0 or 1 for a condition. */
const PARSERS: Readonly<Record<number, (text: string) => unknown>> = {
  [TYPE.bool]: (text) => (text === "t" ? 1 : 0),
  [TYPE.bytea]: (text) => new Uint8Array(Buffer.from(text.slice(2), "hex")).buffer,
  [TYPE.int8]: Number,
  [TYPE.int4]: Number,
  [TYPE.numeric]: Number,
  [TYPE.json]: (text) => text,
};
const TYPES: CustomTypesConfig = {
  getTypeParser: (type: number) => PARSERS[type] ?? String,
};

/**
 * Statements are written to be walked from their first table on, by indexes. Before the planner knows how many rows there are, it
 * guesses otherwise. The settings end with the transaction, so that a pooler may give each one another connection.
 */
const SETTINGS = [
  `search_path = ${SCHEMA}, pg_catalog`,
  "enable_hashjoin = off",
  "enable_mergejoin = off",
  "enable_seqscan = off",
  "jit = off",
  // A server that stands still holds what it has locked for no longer than its turn lasts.
  "idle_in_transaction_session_timeout = 10000",
];

/** One connection to the database, made anew where it was lost. */
class Connection {
  readonly #setup: DatabaseSetup;
  #client: Client | undefined;

  constructor(setup: DatabaseSetup) {
    this.#setup = setup;
  }

  /** @throws EngineFailure when the database cannot be reached */
  async open(): Promise<Client> {
    if (this.#client !== undefined) return this.#client;
    const client = new Client({
      connectionString: this.#setup.url,
      types: TYPES,
      application_name: "evreg",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      query_timeout: this.#setup.statementTimeoutMs + CONNECT_TIMEOUT_MS,
    });
    const forget = (): void => {
      if (this.#client === client) this.#client = undefined;
    };
    // A connection that is lost between two queries says so here; the next query makes another one.
    client.on("error", forget);
    client.on("end", forget);
    try {
      await client.connect();
    } catch (error) {
      client.end().catch(() => undefined);
      throw databaseFailure(error);
    }
    return (this.#client = client);
  }

  /** Does `work` in one transaction. */
  async transaction<T>(begin: string, work: (client: Client) => Promise<T>): Promise<T> {
    const client = await this.open();
    const settings = [...SETTINGS, `statement_timeout = ${this.#setup.statementTimeoutMs}`];
    try {
      await client.query(`${begin}; ${settings.map((one) => `SET LOCAL ${one}`).join("; ")}`);
      return await work(client);
    } catch (error) {
      const failure = databaseFailure(error);
      if (isLost(failure)) this.#drop(client);
      else await client.query("ROLLBACK").catch(() => this.#drop(client));
      throw failure;
    }
  }

  #drop(client: Client): void {
    if (this.#client === client) this.#client = undefined;
    client.end().catch(() => undefined);
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => undefined);
  }
}

interface PreparedStatement extends Translated {
  /** What the database keeps it by; `undefined` for one that it does not keep. */
  readonly name: string | undefined;
}

/** Statements that were translated, by their text and the types of their values. */
const STATEMENTS = new Map<string, PreparedStatement>();
/** So many are kept, here and in the database. Texts vary little, so there are hardly ever so many. */
const MAX_STATEMENTS = 500;

function statementFor(text: string, values: readonly SqlValue[]): PreparedStatement {
  const types = values.map(parameterType);
  const key = `${types.join()} ${text}`;
  const known = STATEMENTS.get(key);
  if (known !== undefined) return known;
  const isKept = STATEMENTS.size < MAX_STATEMENTS;
  const statement = { name: isKept ? `evreg_${STATEMENTS.size}` : undefined, ...translated(text, types) };
  if (isKept) STATEMENTS.set(key, statement);
  return statement;
}

/** The statements of a transaction. */
class PostgresSql implements Sql {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  readonly #query = async (text: string, values: readonly SqlValue[]): Promise<QueryResult> => {
    for (const value of values) if (typeof value === "string") checkText("text", value);
    const statement = statementFor(text, values);
    const { name, text: own, places } = statement;
    const query = { text: own, values: places.map((place) => parameterOf(values[place]!)) };
    return await this.#client.query(name === undefined ? query : { name, ...query });
  };

  readonly rows = async <T>(text: string, ...values: SqlValue[]): Promise<readonly T[]> =>
    (await this.#query(text, values)).rows as T[];

  readonly first = async <T>(text: string, ...values: SqlValue[]): Promise<T | undefined> =>
    (await this.#query(text, values)).rows[0] as T | undefined;

  readonly value = async <T>(text: string, ...values: SqlValue[]): Promise<T> =>
    Object.values((await this.first<object>(text, ...values)) ?? {})[0] as T;

  readonly joined = async (text: string, ...values: SqlValue[]): Promise<Uint8Array<ArrayBuffer>> => {
    const rows = await this.rows<{ readonly bytes: ArrayBuffer }>(text, ...values);
    const joined = new Uint8Array(rows.reduce((sum, { bytes }) => sum + bytes.byteLength, 0));
    let end = 0;
    for (const { bytes } of rows) {
      joined.set(new Uint8Array(bytes), end);
      end += bytes.byteLength;
    }
    return joined;
  };

  readonly run = async (text: string, ...values: SqlValue[]): Promise<number> =>
    (await this.#query(text, values)).rowCount ?? 0;

  /** The database keeps old rows until it vacuums, and overwrites nothing. */
  readonly erase = this.run;
}

function parameterOf(value: SqlValue): unknown {
  if (typeof value === "boolean") return value ? 1 : 0;
  return value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value;
}

/** The connection that reads. */
export class PostgresReader implements ReaderConnection {
  protected readonly connection: Connection;
  protected readonly key: Uint8Array | undefined;

  constructor(setup: DatabaseSetup, key: Uint8Array | undefined) {
    this.connection = new Connection(setup);
    this.key = key;
  }

  answer<T>(read: (work: Work) => Promise<T>): Promise<T> {
    return this.connection.transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", async (client) => {
      const result = await read(workOn(new PostgresSql(client), this.key, undefined));
      await client.query("COMMIT");
      return result;
    });
  }

  shrink(): void {
    // There is no cache on this side.
  }

  close(): Promise<void> {
    return this.connection.close();
  }
}

/** After a commit whose end is not known, the database is asked for so long. */
const DOUBT_MS = 10_000;
const ASK_AGAIN_MS = 200;

/** What the row of `turn` says once a transaction has locked it and counted itself. */
export interface Turn {
  readonly epoch: number;
  readonly writes: number;
}

/**
 * The connection that writes. All writes of all who use the database take turns: each locks the row of `turn`, so that what an
 * operation reads does not change before it writes, and numbers and times rise in the order of commits.
 */
export class PostgresWriter extends PostgresReader implements WriterConnection {
  lastCommit = { commitMs: 0, fsyncs: 0 };
  /** Our time of service, and our last write; `undefined` before it has begun. */
  #turn: Turn | undefined;

  async write<T>(
    work: (work: Work) => Promise<T>,
    _durable: Durable = "now",
    bytes?: ArrayBuffer,
  ): Promise<T> {
    let committing: { readonly turn: Turn; readonly result: T } | undefined;
    try {
      return await this.connection.transaction("BEGIN", async (client) => {
        const turn = await this.#nextTurn(client);
        const result = await work(workOn(new PostgresSql(client), this.key, bytes));
        const startedMs = performance.now();
        committing = { turn, result };
        await client.query("COMMIT");
        this.lastCommit = { commitMs: performance.now() - startedMs, fsyncs: 1 };
        if (this.#turn !== undefined) this.#turn = turn;
        return result;
      });
    } catch (error) {
      if (committing === undefined || !isLost(error)) throw error;
      if (!(await this.#isCommitted(committing.turn, error))) throw error;
      if (this.#turn !== undefined) this.#turn = committing.turn;
      return committing.result;
    }
  }

  /** Begins our time of service, which `take` makes in a transaction of its own. */
  async serve<T extends Turn>(take: (work: Work) => Promise<T>): Promise<T> {
    const taken = await this.write(take);
    const { epoch, writes } = taken;
    this.#turn = { epoch, writes };
    return taken;
  }

  async #nextTurn(client: Client): Promise<Turn> {
    const { rows } = await client.query<Turn>({
      name: "evreg_turn",
      text: "UPDATE turn SET writes = writes + 1 RETURNING epoch, writes",
    });
    const turn = rows[0]!;
    const own = this.#turn;
    if (own === undefined) return turn;
    if (turn.epoch !== own.epoch) {
      throw new EngineFailure("failed", "another server has taken the database over");
    }
    if (turn.writes !== own.writes + 1) {
      throw new EngineFailure(
        "failed",
        "the database lacks what was acknowledged: an older copy of it has taken its place",
      );
    }
    return turn;
  }

  /**
   * Says whether a transaction was committed whose answer was lost, by what the row of `turn` has.
   * @throws EngineFailure `in_doubt` where the database is not back, or another server has it
   */
  async #isCommitted({ epoch, writes }: Turn, lost: EngineFailure): Promise<boolean> {
    for (const endMs = performance.now() + DOUBT_MS; performance.now() < endMs; await wait(ASK_AGAIN_MS)) {
      try {
        const now = await this.connection.transaction("BEGIN", async (client) => {
          // The lock waits for the transaction, should it still be under way.
          const { rows } = await client.query<Turn>("SELECT epoch, writes FROM turn FOR UPDATE");
          await client.query("COMMIT");
          return rows[0]!;
        });
        if (now.epoch !== epoch) break;
        return now.writes >= writes;
      } catch {
        // The database is not back yet.
      }
    }
    throw new EngineFailure("in_doubt", lost.message, { cause: lost });
  }
}
