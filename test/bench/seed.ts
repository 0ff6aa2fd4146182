import { join } from "node:path";
import { createClient } from "@libsql/client";
import { Client } from "pg";
import { ALL_ACTIONS, BLOCK } from "../../src/store/sql/events/counts.ts";
import { answerCalls } from "./calls.ts";
import { HISTORY_ACTIONS, type History, PLACE_OF_N } from "./history.ts";
import { ID_MARK, PAYLOAD } from "./workload.ts";

// Writes the history into a data file or a database that a server has made and left: each event delivered at the first attempt, by
// the one subscription of its action. Straight into the tables, as publishing would take minutes.

const CHUNK = 200_000;
/** Added to an event's number, which then has the eight digits of its id. */
const FIRST_ID = 10_000_000;

/** Numbers ?1 to ?2, each with its time, its action and the one subscription of that. */
const SERIES = `WITH RECURSIVE numbered (n) AS
    (SELECT CAST(?1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbered WHERE n < CAST(?2 AS BIGINT)),
  series AS (SELECT n, CAST(?3 AS BIGINT) + n * CAST(?4 AS BIGINT) AS at_ms, a.rowid AS action_id, s.rowid AS subscription_id
    FROM numbered
    JOIN (VALUES ${HISTORY_ACTIONS.map(({ action }, place) => `(${place}, '${action}')`).join(", ")}) AS p
      ON p.column1 = ${PLACE_OF_N}
    JOIN action AS a ON a.action = p.column2 JOIN subscription AS s ON s.action = a.action)`;

/** @param bytesOf a text as the engine's bytes */
const eventsBy = (bytesOf: (text: string) => string): string => `${SERIES}
  INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
  SELECT n, action_id, 1, at_ms, ${bytesOf(`CAST(?5 AS TEXT) || (${FIRST_ID} + n) || CAST(?6 AS TEXT)`)}
  FROM series ORDER BY n`;

const DELIVERIES = `${SERIES}
  INSERT INTO delivery (rowid, event_id, subscription_id, state, attempt, created_ms, finished_ms,
    first_start_ms, first_duration_ms, first_status_code)
  SELECT n, n, subscription_id, 2, 1, at_ms, at_ms + 5, 2, 3, 200 FROM series ORDER BY n`;

/** Nothing but the events themselves; if this is broken off, the data are of no use. */
const HASTY_FILE = [
  "PRAGMA locking_mode = EXCLUSIVE",
  "PRAGMA journal_mode = OFF",
  "PRAGMA synchronous = OFF",
  "PRAGMA foreign_keys = OFF",
  "PRAGMA cache_size = -262144",
];
const HASTY_DATABASE = ["SET search_path = evreg, pg_catalog", "SET synchronous_commit = off"];

/** What evreg's transactions do in a database with each event, and the database by itself after a while. */
const AFTERWARDS = [
  `INSERT INTO event_count (action_id, block, events)
    SELECT coalesce(action_id, ${ALL_ACTIONS}), block, count(*)
    FROM (SELECT action_id, rowid / ${BLOCK} AS block FROM event) AS e
    GROUP BY GROUPING SETS ((action_id, block), (block))`,
  "SELECT setval(pg_get_serial_sequence('event', 'rowid'), max(rowid)) FROM event",
  "SELECT setval(pg_get_serial_sequence('delivery', 'rowid'), max(rowid)) FROM delivery",
  "VACUUM ANALYZE",
];

interface Engine {
  readonly run: (statement: string, args?: (number | string)[]) => Promise<unknown>;
  readonly bytesOf: (text: string) => string;
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly close: () => unknown;
}

function ofFolder(folder: string): Engine {
  const client = createClient({ url: `file:${join(folder, "evreg.db")}`, concurrency: 1 });
  return {
    run: (sql, args = []) => client.execute({ sql, args }),
    bytesOf: (text) => `CAST(${text} AS BLOB)`,
    before: HASTY_FILE,
    after: [],
    close: () => client.close(),
  };
}

async function ofDatabase(url: string): Promise<Engine> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return {
    run: (statement, args) => client.query(statement.replaceAll(/\?(\d)/g, "$$$1"), args),
    bytesOf: (text) => `convert_to(${text}, 'UTF8')`,
    before: HASTY_DATABASE,
    after: AFTERWARDS,
    close: () => client.end(),
  };
}

interface Seeding {
  readonly folder: string;
  readonly database: string | undefined;
  readonly history: History;
}

const calls = {
  async seed({ folder, database, history }: Seeding): Promise<void> {
    const { events, startMs, stepMs } = history;
    const engine = database === undefined ? ofFolder(folder) : await ofDatabase(database);
    for (const statement of engine.before) await engine.run(statement);
    for (let first = 1; first <= events; first += CHUNK) {
      const series = [first, Math.min(first + CHUNK - 1, events), startMs, stepMs];
      await engine.run(eventsBy(engine.bytesOf), [...series, ...PAYLOAD.split(ID_MARK)]);
      await engine.run(DELIVERIES, series);
    }
    for (const statement of engine.after) await engine.run(statement);
    await engine.close();
  },
};
export type SeedCalls = typeof calls;

answerCalls(calls);
