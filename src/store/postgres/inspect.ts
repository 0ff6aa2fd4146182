import type { DatabaseFacts } from "../store.ts";
import type { Work } from "../sql/operation.ts";
import { disagreementsOf } from "./nodes.ts";

/** Settings without which a crash of the database loses what was acknowledged. */
const RISKS = ["fsync", "full_page_writes", "synchronous_commit"];

export async function risksOf(work: Work): Promise<readonly string[]> {
  const off = await work.rows<{ readonly name: string }>(
    "SELECT name FROM list(?: name text) AS durable WHERE current_setting(name) = 'off'",
    JSON.stringify(RISKS),
  );
  return off.map(({ name }) => name);
}

/** Looks at what the database says of itself. */
export async function inspect(work: Work): Promise<DatabaseFacts> {
  const facts = await work.first<Omit<DatabaseFacts, "risks" | "disagreements">>(
    `SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS bytes,
        (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
        current_setting('max_connections')::bigint AS maxConnections,
        (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start) * 1000), 0)::bigint FROM pg_stat_activity
          WHERE datname = current_database()) AS oldestTransactionMs,
        t.relname AS "table", t.n_live_tup AS liveRows, t.n_dead_tup AS deadRows
      FROM pg_stat_user_tables AS t WHERE t.schemaname = 'evreg' ORDER BY t.n_dead_tup DESC LIMIT 1`,
  );
  return { ...facts!, risks: await risksOf(work), disagreements: await disagreementsOf(work) };
}
