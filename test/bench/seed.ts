import { type Client, createClient, type InArgs } from "@libsql/client";
import { answerCalls } from "./calls.ts";
import { HISTORY_ACTIONS, type History, PLACE_OF_N } from "./history.ts";
import { ID_MARK } from "./request-bytes.ts";
import { PAYLOAD } from "./workload.ts";

// Writes the history into a data file that a server has made and left: each event delivered at the first attempt, by the
// one subscription of its action. Straight into the tables, as publishing would take minutes.

const CHUNK = 200_000;

/** Nothing but the events themselves; if this is broken off, the file is of no use. */
const PRAGMAS = [
  "PRAGMA locking_mode = EXCLUSIVE",
  "PRAGMA journal_mode = OFF",
  "PRAGMA synchronous = OFF",
  "PRAGMA foreign_keys = OFF",
  "PRAGMA cache_size = -262144",
];

/** Numbers ?1 to ?2, and for each the place of its action. */
const NUMBERS = `WITH RECURSIVE numbered (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbered WHERE n < ?2),
  series AS (SELECT n, ?3 + n * ?4 AS at_ms, ${PLACE_OF_N} AS place FROM numbered)`;

const EVENTS = `${NUMBERS}
  INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
  SELECT n, history.action_id, 1, at_ms, CAST(?5 || printf('%08d', n) || ?6 AS BLOB)
  FROM series JOIN temp.history USING (place)`;

const DELIVERIES = `${NUMBERS}
  INSERT INTO delivery (rowid, event_id, subscription_id, state, attempt, created_ms, finished_ms,
    first_start_ms, first_duration_ms, first_status_code)
  SELECT n, n, history.subscription_id, 2, 1, at_ms, at_ms + 5, 2, 3, 200 FROM series JOIN temp.history USING (place)`;

async function notePlaces(client: Client): Promise<void> {
  await client.execute(
    "CREATE TEMP TABLE history (place INTEGER PRIMARY KEY, action_id INTEGER, subscription_id INTEGER)",
  );
  for (const [place, { action }] of HISTORY_ACTIONS.entries()) {
    await client.execute({
      sql: `INSERT INTO history SELECT ?, a.rowid, s.rowid
        FROM action AS a JOIN subscription AS s ON s.action = a.action WHERE a.action = ?`,
      args: [place, action],
    });
  }
}

const calls = {
  async seed({ file, history }: { file: string; history: History }): Promise<void> {
    const client = createClient({ url: `file:${file}`, concurrency: 1 });
    for (const pragma of PRAGMAS) await client.execute(pragma);
    await notePlaces(client);
    const [before = "", after = ""] = PAYLOAD.split(ID_MARK);
    const run = async (sql: string, args: InArgs): Promise<void> => {
      await client.execute({ sql, args });
    };
    for (let first = 1; first <= history.events; first += CHUNK) {
      const series = [first, first + CHUNK - 1, history.startMs, history.stepMs];
      await run(EVENTS, [...series, before, after]);
      await run(DELIVERIES, series);
    }
    client.close();
  },
};
export type SeedCalls = typeof calls;

answerCalls(calls);
