import { setTimeout as wait } from "node:timers/promises";
import { Client } from "pg";
import { type Cluster, DURABLE, startCluster } from "../../support/postgres.ts";
import { deliverSpread, subscribeSpread } from "../arrivals.ts";
import { median } from "../latencies.ts";
import type { Rig, Scenario } from "../rig.ts";
import { ratio } from "../rounds.ts";
import { atLeast, perSecond, type Row, times } from "../row.ts";
import { register } from "../seeded-place.ts";
import { type BenchServer, startServer } from "../server.ts";
import { BATCH_ITEMS, batchOf, PAUSED_ACTION, payloadOf, publishOf, type RequestSpec } from "../workload.ts";

const DURATION_MS = 2_000;
const WARM_UP_MS = 500;
const BATCH_CONNECTIONS = 8;
const CONNECTIONS = 64;
const TARGET = 0.5;
const MOST_NODES = 3;

const INSERT = `INSERT INTO evreg.event (rowid, action_id, revision, timestamped_ms, payload)
  SELECT $2 + n, $3, 1, $4, convert_to(value, 'UTF8') FROM jsonb_array_elements_text($1) WITH ORDINALITY AS e (value, n)`;

export const nodes: Scenario = {
  name: "nodes",
  summary:
    "On PostgreSQL: publishing beside the same rows from one connection, and deliveries by 1 to 3 nodes.",
  isOnlyByName: true,
  async run(rig) {
    const cluster = await startCluster(DURABLE);
    try {
      return await measure(rig, cluster);
    } finally {
      await cluster.stop();
    }
  },
};

async function measure(rig: Rig, cluster: Cluster): Promise<readonly Row[]> {
  await cluster.run("CREATE DATABASE evreg");
  await cluster.run("CREATE DATABASE raw");
  const newNode = (database: string): Promise<BenchServer> =>
    startServer({ ...rig.newPlace(), database: cluster.url(database) });
  // Its tables are those that the raw inserts go to.
  await (await newNode("raw")).stop();
  const first = await newNode("evreg");
  await register(first, await rig.handler("fast", "orders"));
  const rounds = await rig.inRounds("nodes", async () => {
    const raw = await rawInserts(cluster.url("raw"));
    const batches = await publish(rig, first, batchOf(PAUSED_ACTION), BATCH_CONNECTIONS);
    const single = await publish(rig, first, publishOf(PAUSED_ACTION), CONNECTIONS);
    return { raw, batch: batches * BATCH_ITEMS, single };
  });
  const rates = await deliveryRates(rig, first, () => newNode("evreg"));
  const [raw, batch] = [rounds.map((round) => round.raw), rounds.map((round) => round.batch)];
  return [
    {
      scenario: "nodes, batch",
      ceiling: `raw inserts ${perSecond(median(raw))}`,
      measured: perSecond(median(batch)),
      ...atLeast(ratio(batch, raw), TARGET),
      detail: rounds,
    },
    { scenario: "nodes, single", figure: perSecond(median(rounds.map(({ single }) => single))) },
    ...rates.map((rate, index): Row => ({
      scenario: `nodes, deliveries by ${index + 1}`,
      ceiling: `1 node ${perSecond(rates[0]!)}`,
      measured: perSecond(rate),
      figure: times(rate / rates[0]!),
    })),
  ];
}

/** Rows a second, in batches that are durable one by one. */
async function rawInserts(url: string): Promise<number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("SET search_path = evreg, pg_catalog");
    const { rows } = await client.query<{ last: string; action: string }>(
      "SELECT (SELECT coalesce(max(rowid), 0) FROM evreg.event) AS last, (SELECT min(rowid) FROM evreg.action) AS action",
    );
    let last = Number(rows[0]!.last);
    const before = last;
    const startedMs = performance.now();
    for (const untilMs = startedMs + DURATION_MS; performance.now() < untilMs; last += BATCH_ITEMS) {
      const payloads = Array.from({ length: BATCH_ITEMS }, (_, item) => payloadOf(item));
      await client.query({
        name: "insert",
        text: INSERT,
        values: [JSON.stringify(payloads), last, rows[0]!.action, Date.now()],
      });
    }
    return (last - before) / ((performance.now() - startedMs) / 1_000);
  } finally {
    await client.end();
  }
}

async function publish(
  rig: Rig,
  { port, token }: BenchServer,
  request: RequestSpec,
  connections: number,
): Promise<number> {
  const how = { port, token, request, connections, warmUpMs: WARM_UP_MS, durationMs: DURATION_MS };
  return (await rig.load.call("closed", how)).ratePerS;
}

/** Deliveries a second by one node, by two, and so on. */
async function deliveryRates(
  rig: Rig,
  first: BenchServer,
  newNode: () => Promise<BenchServer>,
): Promise<readonly number[]> {
  await subscribeSpread(rig, first);
  const all = [first];
  const rates: number[] = [];
  for (let count = 1; count <= MOST_NODES; count += 1) {
    if (count > 1) all.push(await newNode());
    await evenlyShared(first, count);
    rig.options.say(`nodes: deliveries by ${count}`);
    rates.push(await deliverSpread(rig, first));
  }
  for (const node of all) await node.stop();
  return rates;
}

/** Resolves once so many nodes have nearly as many shards each. */
async function evenlyShared(server: BenchServer, count: number): Promise<void> {
  for (;;) {
    const { data } = await server.api<{ data: readonly { shards: number; leaving: number }[] }>(
      "GET",
      "/v1/nodes",
    );
    const shards = data.filter((node) => node.leaving === 0 && node.shards > 0).map((node) => node.shards);
    if (shards.length === count && Math.max(...shards) - Math.min(...shards) <= 1) return;
    await wait(100);
  }
}
