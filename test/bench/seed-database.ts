import { Client } from "pg";
import { ALL_ACTIONS, BLOCK_SIZES } from "../../src/store/sql/events/counts.ts";
import { HISTORY_ACTIONS, type History, PLACE_OF_N } from "./history.ts";
import { ID_MARK } from "./request-bytes.ts";
import { PAYLOAD } from "./workload.ts";

// Writes the history into a database that a server has made and left, as `seed.ts` does into a data file.

const CHUNK = 200_000;

/** Numbers $1 to $2, each with its time, its action and the one subscription of that. */
const SERIES = `(SELECT n, $3::bigint + n * $4::bigint AS at_ms, a.rowid AS action_id, s.rowid AS subscription_id
  FROM generate_series($1::bigint, $2::bigint) AS n
  JOIN (VALUES ${HISTORY_ACTIONS.map(({ action }, place) => `(${place}, '${action}')`).join(", ")}) AS p (place, action)
    ON p.place = ${PLACE_OF_N}
  JOIN action AS a USING (action) JOIN subscription AS s USING (action) ORDER BY n) AS series`;

const EVENTS = `INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
  SELECT n, action_id, 1, at_ms, convert_to($5 || lpad(n::text, 8, '0') || $6, 'UTF8') FROM ${SERIES}`;

const DELIVERIES = `INSERT INTO delivery (rowid, event_id, subscription_id, state, attempt, created_ms, finished_ms,
    first_start_ms, first_duration_ms, first_status_code)
  SELECT n, n, subscription_id, 2, 1, at_ms, at_ms + 5, 2, 3, 200 FROM ${SERIES}`;

/** What transactions of evreg do with each event, and the database does by itself after a while. */
const AFTERWARDS = [
  ...BLOCK_SIZES.map(
    (size) => `INSERT INTO event_count (action_id, size, block, events)
      SELECT coalesce(action_id, ${ALL_ACTIONS}), ${size}, block, count(*)
      FROM (SELECT action_id, rowid / ${size} AS block FROM event) AS e
      GROUP BY GROUPING SETS ((action_id, block), (block))`,
  ),
  "SELECT setval(pg_get_serial_sequence('event', 'rowid'), max(rowid)) FROM event",
  "SELECT setval(pg_get_serial_sequence('delivery', 'rowid'), max(rowid)) FROM delivery",
  "VACUUM ANALYZE",
];

export async function seedDatabase(url: string, history: History): Promise<void> {
  const { events, startMs, stepMs } = history;
  const fill = (statement: string, more: readonly string[] = []): Promise<void> =>
    connected(url, async (client) => {
      for (let first = 1; first <= events; first += CHUNK) {
        const last = Math.min(first + CHUNK - 1, events);
        await client.query(statement, [first, last, startMs, stepMs, ...more]);
      }
    });
  await Promise.all([fill(EVENTS, PAYLOAD.split(ID_MARK)), fill(DELIVERIES)]);
  await connected(url, async (client) => {
    for (const statement of AFTERWARDS) await client.query(statement);
  });
}

async function connected(url: string, work: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("SET search_path = evreg, pg_catalog");
    await client.query("SET synchronous_commit = off");
    await work(client);
  } finally {
    await client.end();
  }
}
