import { type Client, createClient } from "@libsql/client";
import { TABLES } from "../../src/store/sql/tables.ts";
import { answerCalls } from "./calls.ts";

// The most that the engine takes: the rows of a batch, as JSON, straight into its tables, each batch durable.

const PRAGMAS = [
  "PRAGMA locking_mode = EXCLUSIVE",
  "PRAGMA journal_mode = WAL",
  "PRAGMA synchronous = FULL",
  "PRAGMA foreign_keys = ON",
  "PRAGMA cache_size = -32768",
  "PRAGMA wal_autocheckpoint = 4000",
];

const INSERT = `INSERT INTO event (action_id, revision, timestamped_ms, payload)
  SELECT value ->> 0, value ->> 1, value ->> 2, CAST(value ->> 3 AS BLOB) FROM json_each(?)`;

let client: Client | undefined;

const calls = {
  /** Makes the tables in a new file. */
  async open({ file }: { file: string }): Promise<void> {
    client = createClient({ url: `file:${file}`, concurrency: 1 });
    for (const pragma of PRAGMAS) await client.execute(pragma);
    for (const statement of TABLES) await client.execute(statement);
    await client.execute(
      "INSERT INTO action (action, application, revision, created_ms) VALUES ('order.created', 'shop', 1, 0)",
    );
  },
  /** Inserts batches of these payloads, one after the other; answers rows a second. */
  async insert(work: { payloads: readonly string[]; durationMs: number }): Promise<number> {
    const { payloads, durationMs } = work;
    if (client === undefined) throw new Error("open comes first.");
    const startedMs = performance.now();
    const untilMs = startedMs + durationMs;
    let rows = 0;
    while (performance.now() < untilMs) {
      const nowMs = Date.now();
      const batch = JSON.stringify(payloads.map((payload) => [1, 1, nowMs, payload]));
      const { rowsAffected } = await client.execute({ sql: INSERT, args: [batch] });
      rows += rowsAffected;
    }
    return rows / ((performance.now() - startedMs) / 1_000);
  },
};
export type RawInsertCalls = typeof calls;

answerCalls(calls);
