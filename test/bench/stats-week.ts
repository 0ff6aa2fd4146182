import { createClient } from "@libsql/client";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startProgram } from "../support/program.ts";
import { bucketOf } from "../../src/domain/stats/histogram.ts";
import { floorTo, STATS_SPANS } from "../../src/domain/stats/stats.ts";
import { MEASURE } from "../../src/domain/stats/tally.ts";

// Fills all figures that are kept, of actions and subscriptions that always had traffic, and prints how long `GET /v1/stats` then
// takes: node test/bench/stats-week.ts [--actions 100] [--subscriptions 100] [--calls 100]

const { values: given } = parseArgs({
  options: {
    actions: { type: "string", default: "100" },
    subscriptions: { type: "string", default: "100" },
    calls: { type: "string", default: "100" },
    /** Only fills this folder: in a process of its own, whose end closes the file for certain. */
    fill: { type: "string" },
  },
});
const actions = Number(given.actions);
const subscriptions = Number(given.subscriptions);
const calls = Number(given.calls);

const folder = given.fill ?? mkdtempSync(join(tmpdir(), "evreg-stats-"));

/** The measures of a span with answers between 5 ms and 2 s, as JSON. */
function measures(): string {
  const counted = [MEASURE.published, MEASURE.delivered, MEASURE.failedAttempts] as number[];
  for (let ms = 5; ms < 2_000; ms *= 1.4) {
    counted.push(MEASURE.latency + bucketOf(ms), MEASURE.attempt + bucketOf(ms));
  }
  return JSON.stringify(counted);
}

async function register(url: string): Promise<void> {
  const post = async (path: string, body: unknown): Promise<void> => {
    const answer = await fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(await answer.text());
  };
  for (let number = 0; number < actions; number += 1) {
    const action = `order.kind${number}`;
    await post("/v1/actions", { action, application: `app${number % 10}`, schemata: { type: "object" } });
  }
  for (let number = 0; number < subscriptions; number += 1) {
    const action = `order.kind${number % actions}`;
    const subscription = `reader${number}`;
    const handler = "http://127.0.0.1:9/";
    await post("/v1/subscriptions", { application: `app${number % 10}`, subscription, action, handler });
  }
}

async function fill(): Promise<void> {
  const client = createClient({ url: `file:${join(folder, "evreg.db")}`, concurrency: 1 });
  for (const { spanMs, keptMs } of STATS_SPANS) {
    const to = floorTo(Date.now(), spanMs);
    await client.execute({
      sql: `INSERT INTO figure SELECT ?1, starts.ms, series.action_id, series.subscription_id, measures.value, 20, '503'
        FROM (WITH RECURSIVE starts (ms) AS (SELECT ?2 UNION ALL SELECT ms + ?1 FROM starts WHERE ms + ?1 < ?3) SELECT ms FROM starts) AS starts
        CROSS JOIN (
          SELECT 0 AS action_id, 0 AS subscription_id
          UNION ALL SELECT rowid, 0 FROM action WHERE action LIKE 'order.%'
          UNION ALL SELECT action_id, subscription_id FROM binding) AS series
        CROSS JOIN json_each(?4) AS measures ORDER BY 1, 2, 3, 4, 5`,
      args: [spanMs, floorTo(to - keptMs, spanMs), to, measures()],
    });
  }
  const { rows } = await client.execute("SELECT count(*) AS count FROM figure");
  process.stdout.write(`${Number(rows[0]?.["count"])} rows\n`);
  client.close();
}

async function measure(url: string, query: string): Promise<void> {
  const took: number[] = [];
  let bytes = 0;
  for (let call = 0; call < calls; call += 1) {
    const startedMs = performance.now();
    const answer = await fetch(`${url}/v1/stats?${query}`);
    bytes = (await answer.text()).length;
    took.push(performance.now() - startedMs);
    if (!answer.ok) throw new Error(`${query}: ${answer.status}`);
  }
  took.sort((one, other) => one - other);
  const at = (percent: number): string => took[Math.ceil((took.length * percent) / 100) - 1]!.toFixed(1);
  process.stdout.write(`${query.padEnd(44)} p50 ${at(50)} ms  p99 ${at(99)} ms  ${bytes} bytes\n`);
}

async function run(): Promise<void> {
  try {
    const maker = await startProgram(folder, ["--dev"]);
    await register(maker.url);
    await maker.end("SIGTERM");
    execFileSync(process.execPath, [fileURLToPath(import.meta.url), "--fill", folder], { stdio: "inherit" });
    const server = await startProgram(folder, ["--dev"]);
    for (const range of ["7d", "24h", "1h", "5m"]) {
      await measure(server.url, `range=${range}`);
      await measure(server.url, `range=${range}&action=order.kind7`);
      await measure(server.url, `range=${range}&action=order.*`);
      await measure(server.url, `range=${range}&subscription=7`);
      await measure(server.url, `range=${range}&application=app3`);
      await measure(server.url, `range=${range}&by=action`);
      await measure(server.url, `range=${range}&by=subscription`);
    }
    await server.end("SIGTERM");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await (given.fill === undefined ? run() : fill());
