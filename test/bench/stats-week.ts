import { createClient } from "@libsql/client";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startProgram } from "../support/program.ts";
import { TimeHistogram, bucketOf } from "../../src/domain/stats/histogram.ts";

// Fills 8 days of figures, by minute, hour and day, and an hour by ten seconds, of actions and subscriptions that always had traffic, and prints how long
// `GET /v1/stats` then takes: node test/bench/stats-week.ts [--actions 100] [--subscriptions 100] [--calls 100]

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

const MINUTES = 8 * 24 * 60;
const folder = given.fill ?? mkdtempSync(join(tmpdir(), "evreg-stats-"));

/** What a minute with answers between 5 ms and 2 s leaves, in hex. */
function times(): string {
  const histogram = new TimeHistogram();
  for (let ms = 5; ms < 2_000; ms *= 1.4) histogram.add(bucketOf(ms), Math.ceil(2_000 / ms));
  return histogram.encoded();
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
  const now = Math.floor(Date.now() / 60_000);
  const tens = 6 * now;
  // Spans as they are stored, each from where to where and how far apart its rows are; that of 0 is ten seconds.
  const spans = [
    [0, tens - 360, tens, 1],
    ...[1, 60, 1_440].map((span) => [span, Math.floor((now - MINUTES) / span) * span, now, span] as const),
  ] as const;
  for (const [span, from, to, step] of spans) {
    await client.execute({
      sql: `INSERT INTO stats SELECT ?1, ats.at, subjects.kind, subjects.id, subjects.application, 20, 1, 19, 2, 1, unhex(?4), unhex(?4), '503'
        FROM (WITH RECURSIVE ats (at) AS (SELECT ?2 UNION ALL SELECT at + ?5 FROM ats WHERE at + ?5 < ?3) SELECT at FROM ats) AS ats
        CROSS JOIN (
          SELECT 0 AS kind, 0 AS id, '' AS application
          UNION ALL SELECT DISTINCT 1, 0, application FROM subscription
          UNION ALL SELECT 2, rowid, application FROM action WHERE action LIKE 'order.%'
          UNION ALL SELECT 3, rowid, application FROM subscription) AS subjects ORDER BY 1, 2, 3, 4, 5`,
      args: [span, from, to, times(), step],
    });
  }
  const { rows } = await client.execute("SELECT count(*) AS count FROM stats");
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
