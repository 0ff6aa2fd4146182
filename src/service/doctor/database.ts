import { byteCount } from "../../domain/formats.ts";
import { type Finding, fine, type Node, problem, warning } from "../../domain/operations.ts";
import type { DatabaseFacts } from "../../store/store.ts";

/** With more of its connections in use, the database soon refuses some. */
const MANY_CONNECTIONS = 0.8;
const LONG_OPEN_MS = 60 * 60_000;
/** A table with few rows is of many dead ones now and then. */
const MANY_DEAD_ROWS = 1_000_000;
const GONE_LATELY_MS = 60 * 60_000;

/** What the doctor says of a database and of those who share it. */
export function databaseFindings(
  facts: DatabaseFacts,
  nodes: readonly Node[],
  nowMs: number,
): readonly Finding[] {
  return [
    sizeFinding(facts),
    durabilityFinding(facts),
    vacuumFinding(facts),
    nodesFinding(nodes, nowMs),
    settingsFinding(facts),
  ];
}

function sizeFinding({ version, bytes, connections, maxConnections }: DatabaseFacts): Finding {
  const sentence = `PostgreSQL ${version}, ${byteCount(bytes)}; ${connections} of ${maxConnections} connections are in use.`;
  if (connections < maxConnections * MANY_CONNECTIONS) return fine("database", sentence);
  const remedy = "Raise max_connections, or close what needs none: each node takes three.";
  return warning("database", sentence, remedy);
}

function durabilityFinding({ risks }: DatabaseFacts): Finding {
  if (risks.length === 0) return fine("durability", "What is acknowledged outlives a crash of the database.");
  const sentence = `${risks.join(", ")} off: when the database or its machine crashes, events that were acknowledged are lost.`;
  return problem("durability", sentence, "Set that on in the configuration of the database.");
}

function vacuumFinding(facts: DatabaseFacts): Finding {
  const { table, liveRows, deadRows, oldestTransactionMs } = facts;
  if (oldestTransactionMs >= LONG_OPEN_MS) {
    const hours = Math.floor(oldestTransactionMs / LONG_OPEN_MS);
    const sentence = `A transaction has been open for ${hours} h, so that rows which nobody needs any more stay since then.`;
    return warning("vacuum", sentence, "Find it in pg_stat_activity by its xact_start, and end it.");
  }
  const sentence = `The table ${table} has ${deadRows} dead rows beside ${liveRows}.`;
  if (deadRows < Math.max(MANY_DEAD_ROWS, liveRows)) return fine("vacuum", sentence);
  return warning("vacuum", sentence, "Run VACUUM on it, and let autovacuum run more often there.");
}

function settingsFinding({ disagreements }: DatabaseFacts): Finding {
  if (disagreements.length === 0) return fine("settings", "All nodes that run have the same settings.");
  const sentence = `Nodes have different settings: ${disagreements.join("; ")}.`;
  const remedy =
    "Give all of them the same configuration and the same evreg, and start anew those that had others.";
  return warning("settings", sentence, remedy);
}

function nodesFinding(nodes: readonly Node[], nowMs: number): Finding {
  const serving = nodes.filter(({ status }) => status === "serving").length;
  if (serving === 0) {
    return warning("nodes", "No node runs, so nothing is delivered.", "Start one with `evreg serve`.");
  }
  const sentence = `${serving} ${serving === 1 ? "node delivers" : "nodes deliver"}.`;
  const gone = nodes.filter(
    ({ status, seen_at }) => status === "gone" && nowMs - Date.parse(seen_at) < GONE_LATELY_MS,
  );
  if (gone.length === 0) return fine("nodes", sentence);
  const list = gone.map(({ host, pid, seen_at }) => `${host} (process ${pid}, ${seen_at})`).join(", ");
  const remedy = "See the log of its supervisor. What it had under way is sent by the others.";
  return warning("nodes", `${sentence} Ended without a word within the hour: ${list}.`, remedy);
}
