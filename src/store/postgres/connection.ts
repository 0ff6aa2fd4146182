import { hash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { type CustomTypesConfig, Pool, type PoolClient, type QueryResult, type QueryResultRow } from "pg";
import { joinPieces } from "../../json/raw-json.ts";
import { Vault } from "../secret-cipher.ts";
import { type Durable, type Work, workOn } from "../sql/operation.ts";
import { checkText, EngineFailure, isList, type Sql, type SqlValue } from "../sql/sql.ts";
import type { ReaderConnection, WriterConnection } from "../thread/worker.ts";
import { parameterType, translated, type PostgresStatement } from "./dialect.ts";
import { shardOf } from "../rules/shards.ts";
import { databaseFailure, isLost } from "./failure.ts";
import { NEWEST_FORM, SCHEMA } from "./tables.ts";

/** What a connection is made with. */
export interface DatabaseSetup {
  /**
   * The address, with its user and password. With `prepare=false` no statements are kept from one transaction to the next,
   * which a pooler may not do.
   */
  readonly url: string;
  /** The schema of the tables, where it is not the one that servers use. */
  readonly schema?: string;
  readonly statementTimeoutMs: number;
  /** What secrets are encrypted with, where they are. */
  readonly key?: Uint8Array | undefined;
}

export const CONNECT_TIMEOUT_MS = 5_000;
/** After so long without a sign of life, the system asks whether the other end is there. */
const KEEP_ALIVE_MS = 5_000;

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
  "enable_hashjoin = off",
  "enable_mergejoin = off",
  "enable_seqscan = off",
  "jit = off",
  // To start another process takes 5 ms, and no statement here reads for so long: a list of several actions took 18 ms in place of 8.
  "max_parallel_workers_per_gather = 0",
  // The values change no plan. To plan anew for each takes longer than a list of 50: lists 1.34 times as many, single events 1.1.
  "plan_cache_mode = force_generic_plan",
  // A server that stands still, or that no answer reaches, holds its turn for no longer. All others wait for that.
  "idle_in_transaction_session_timeout = 5000",
  "tcp_user_timeout = 5000",
];

/**
 * Has the driver take `sslmode` as PostgreSQL's own programs do: by itself it checks the certificate also for `require`. Without a
 * password it would end in words of its own where one is asked for, and leave the connection open; the database refuses this one.
 */
function addressFor(url: string): string {
  const address = new URL(url);
  address.password ||= "none";
  if (address.searchParams.has("sslmode")) address.searchParams.set("uselibpqcompat", "true");
  return address.href;
}

/** One connection to the database, made anew where it was lost. */
export class DatabaseConnection {
  /** Whether statements are kept, see `DatabaseSetup`. */
  readonly prepares: boolean;
  readonly #setup: DatabaseSetup;
  readonly #pool: Pool;

  constructor(setup: DatabaseSetup) {
    this.prepares = new URL(setup.url).searchParams.get("prepare") !== "false";
    this.#setup = setup;
    this.#pool = new Pool({
      max: 1,
      idleTimeoutMillis: 0,
      connectionString: addressFor(setup.url),
      types: TYPES,
      application_name: "evreg",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      pipeline: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      query_timeout: setup.statementTimeoutMs + CONNECT_TIMEOUT_MS,
    });
    // A connection that is lost between two queries says so here, and one within a query by that; the next query makes another.
    this.#pool.on("error", () => undefined);
    this.#pool.on("connect", (client) => client.on("error", () => undefined));
  }

  /**
   * Does `work` by the connection, which nobody else has meanwhile.
   * @throws EngineFailure when the database cannot be reached
   */
  async #with<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw databaseFailure(error);
    });
    try {
      const result = await work(client);
      client.release();
      return result;
    } catch (error) {
      const failure = databaseFailure(error);
      if (isLost(failure)) client.release(true);
      // Where no transaction is open, this does nothing.
      else
        await client.query("ROLLBACK").then(
          () => client.release(),
          () => client.release(true),
        );
      throw failure;
    }
  }

  async rows<T extends QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<readonly T[]> {
    return await this.#with(async (client) => (await client.query<T>(text, [...values])).rows);
  }

  async transaction<T>(begin: string, work: (client: PoolClient) => Promise<T>): Promise<T> {
    const { schema = SCHEMA, statementTimeoutMs } = this.#setup;
    const settings = [
      ...SETTINGS,
      `search_path = ${schema}, pg_catalog`,
      `statement_timeout = ${statementTimeoutMs}`,
    ];
    return await this.#with(async (client) => {
      // What follows is sent without waiting for the answer. Were this to fail, all of that would as well.
      const begun = client.query(`${begin}; ${settings.map((one) => `SET LOCAL ${one}`).join("; ")}`);
      const [result] = await Promise.all([work(client), begun]);
      return result;
    });
  }

  /** Does `work` in a transaction, and commits that. */
  committed<T>(begin: string, work: (sql: PostgresSql) => Promise<T>): Promise<T> {
    return this.transaction(begin, async (client) => {
      const result = await work(new PostgresSql(client, this.prepares));
      await client.query("COMMIT");
      return result;
    });
  }

  async close(): Promise<void> {
    await this.#pool.end().catch(() => undefined);
  }
}

interface PreparedStatement extends PostgresStatement {
  /** What the database keeps it by; `undefined` for one that it does not keep. */
  readonly name: string | undefined;
}

/** Statements that were translated, by their text and the types of their values. */
const STATEMENTS = new Map<string, PreparedStatement>();
/** So many are kept, here and in the database. Texts vary little, so there are hardly ever so many. */
const MAX_STATEMENTS = 500;

/** A name that no other statement has, not even one of another node whose connection a pooler may give to this one. */
function nameOf(text: string): string {
  return `evreg_${hash("sha256", text).slice(0, 48)}`;
}

function statementFor(text: string, values: readonly SqlValue[]): PreparedStatement {
  const types = values.map(parameterType);
  const key = `${types.join()} ${text}`;
  const known = STATEMENTS.get(key);
  if (known !== undefined) return known;
  const isKept = STATEMENTS.size < MAX_STATEMENTS;
  const own = translated(text, types);
  const statement = { name: isKept ? nameOf(own.text) : undefined, ...own };
  if (isKept) STATEMENTS.set(key, statement);
  return statement;
}

export class PostgresSql implements Sql {
  readonly #client: PoolClient;
  readonly #prepares: boolean;

  constructor(client: PoolClient, prepares = true) {
    this.#client = client;
    this.#prepares = prepares;
  }

  readonly #query = async (text: string, values: readonly SqlValue[]): Promise<QueryResult> => {
    for (const value of values) if (typeof value === "string") checkText("text", value);
    const statement = statementFor(text, values);
    const { name, text: own, places } = statement;
    const query = { text: own, values: places.map((place) => parameterOf(values[place])) };
    return await this.#client.query(name === undefined || !this.#prepares ? query : { name, ...query });
  };

  readonly rows = async <T>(text: string, ...values: SqlValue[]): Promise<readonly T[]> =>
    (await this.#query(text, values)).rows as T[];

  readonly column = async <T>(text: string, ...values: SqlValue[]): Promise<readonly T[]> =>
    (await this.rows<object>(text, ...values)).map((row) => Object.values(row)[0] as T);

  readonly first = async <T>(text: string, ...values: SqlValue[]): Promise<T | undefined> =>
    (await this.#query(text, values)).rows[0] as T | undefined;

  readonly value = async <T>(text: string, ...values: SqlValue[]): Promise<T> =>
    Object.values((await this.first<object>(text, ...values)) ?? {})[0] as T;

  readonly joined = async (text: string, ...values: SqlValue[]): Promise<Uint8Array<ArrayBuffer>> => {
    const rows = await this.rows<{ readonly bytes: ArrayBuffer }>(text, ...values);
    return joinPieces(rows.map(({ bytes }) => new Uint8Array(bytes)));
  };

  readonly run = async (text: string, ...values: SqlValue[]): Promise<number> =>
    (await this.#query(text, values)).rowCount ?? 0;

  /** The database keeps old rows until it vacuums, and overwrites nothing. */
  readonly erase = this.run;
}

function parameterOf(value: SqlValue): unknown {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (isList(value)) return JSON.stringify(value);
  return value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value;
}

export class PostgresReader implements ReaderConnection {
  protected readonly connection: DatabaseConnection;
  protected readonly vault: Vault;

  constructor(setup: DatabaseSetup) {
    this.connection = new DatabaseConnection(setup);
    this.vault = new Vault(setup.key);
  }

  answer<T>(read: (work: Work) => Promise<T>): Promise<T> {
    const begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    return this.connection.committed(begin, (sql) => read(workOn(sql, this.vault)));
  }

  close(): Promise<void> {
    return this.connection.close();
  }
}

/** After a commit whose end is not known, the database is asked for so long. */
const DOUBT_MS = 10_000;
const ASK_AGAIN_MS = 200;

/**
 * What a transaction finds in the row of `turn` once it has its turn, and how many this node has written, with this one. `version`
 * rises when what nodes keep in memory changes, `epoch` when shards change their nodes.
 */
interface Turn {
  readonly writes: number;
  readonly version: number;
  readonly epoch: number;
  readonly form: number;
}

/** Locks the row of `turn`, and counts the transaction as one of this node. */
const NEXT_TURN = `WITH locked AS MATERIALIZED (SELECT version, epoch, form FROM turn FOR UPDATE)
  UPDATE writer SET writes = writes + 1 FROM locked WHERE node = $1 RETURNING writes, version, epoch, form`;
const NEXT_TURN_NAME = nameOf(NEXT_TURN);

/**
 * The connection that writes. All writes of all who use the database take turns: each locks the row of `turn`, so that what an
 * operation reads does not change before it writes, and numbers and times rise in the order of commits.
 */
export class PostgresWriter extends PostgresReader implements WriterConnection {
  lastCommitMs = 0;
  readonly #node: string;
  /** The last transaction of this node that was committed; `undefined` before it takes part. */
  #turn: Pick<Turn, "writes" | "epoch"> | undefined;
  /** The shards whose deliveries this node claims, as of that epoch. */
  #shards: ReadonlySet<number> = new Set();

  constructor(setup: DatabaseSetup, node: string) {
    super(setup);
    this.#node = node;
  }

  async write<T>(
    work: (work: Work) => Promise<T>,
    _durable: Durable = "now",
    bytes?: ArrayBuffer,
  ): Promise<T> {
    let committing: { readonly turn: Turn; readonly own: Work; readonly result: T } | undefined;
    const committed = (version: number): T => {
      const { turn, own, result } = committing!;
      this.#turn = turn;
      if (version !== turn.version) own.changes.push({ version });
      return result;
    };
    try {
      return await this.connection.transaction("BEGIN", async (client) => {
        const turn = this.#turn === undefined ? await firstTurn(client) : await this.#nextTurn(client);
        if (turn.form > NEWEST_FORM) {
          const message = "a newer evreg has changed the tables, which this one does not know";
          throw new EngineFailure("failed", message);
        }
        const owns = (subscription: number): boolean => this.#shards.has(shardOf(subscription));
        const own = workOn(new PostgresSql(client, this.connection.prepares), this.vault, bytes, owns);
        const result = await work(own);
        const startedMs = performance.now();
        committing = { turn, own, result };
        const version = await commit(client);
        this.lastCommitMs = performance.now() - startedMs;
        return committed(version);
      });
    } catch (error) {
      if (committing === undefined || !isLost(error)) throw error;
      return committed(await this.#versionOnceCommitted(committing.turn, error));
    }
  }

  async #nextTurn(client: PoolClient): Promise<Turn> {
    const { rows } = await client.query<Turn>({
      ...(this.connection.prepares ? { name: NEXT_TURN_NAME } : {}),
      text: NEXT_TURN,
      values: [this.#node],
    });
    const [turn] = rows;
    if (turn?.writes !== this.#turn!.writes + 1) {
      const message = "the database lacks what was acknowledged: an older copy of it has taken its place";
      throw new EngineFailure("failed", message);
    }
    if (turn.epoch !== this.#turn!.epoch) {
      const held = await client.query<{ id: number }>(
        "SELECT id FROM shard WHERE node = $1 AND leaving = 0",
        [this.#node],
      );
      this.#shards = new Set(held.rows.map(({ id }) => id));
    }
    return turn;
  }

  /**
   * Finds out whether a transaction was committed whose answer was lost, by how many this node has written.
   * @returns the version as of then or later
   * @throws EngineFailure `in_doubt` where the database is not back; `lost` where the transaction was not committed
   */
  async #versionOnceCommitted({ writes }: Turn, lost: EngineFailure): Promise<number> {
    for (const endMs = performance.now() + DOUBT_MS; performance.now() < endMs; await wait(ASK_AGAIN_MS)) {
      let now: Pick<Turn, "writes" | "version"> | undefined;
      try {
        // The lock waits for the transaction, should it still be under way.
        [now] = await this.connection.rows<Pick<Turn, "writes" | "version">>(
          `SELECT writes, (SELECT version FROM ${SCHEMA}.turn) AS version FROM ${SCHEMA}.writer WHERE node = $1 FOR UPDATE`,
          [this.#node],
        );
      } catch {
        // The database is not back yet.
        continue;
      }
      if (now === undefined || now.writes < writes) throw lost;
      return now.version;
    }
    throw new EngineFailure("in_doubt", lost.message, { cause: lost });
  }
}

/** The turn of a node that begins to take part: nothing counts its transactions yet. */
async function firstTurn(client: PoolClient): Promise<Turn> {
  const { rows } = await client.query<Turn>(
    "SELECT 0 AS writes, version, -1 AS epoch, form FROM turn FOR UPDATE",
  );
  return rows[0]!;
}

/** @returns the version as of the commit */
async function commit(client: PoolClient): Promise<number> {
  const [read] = await Promise.all([
    client.query<Pick<Turn, "version">>("SELECT version FROM turn"),
    client.query("COMMIT"),
  ]);
  return read.rows[0]!.version;
}
