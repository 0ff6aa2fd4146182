import { setTimeout as wait } from "node:timers/promises";
import { Client } from "pg";
import { type Cluster, DURABLE, startCluster } from "../../support/postgres.ts";
import { deliverSpread, subscribeSpread } from "../arrivals.ts";
import { eventListings, type History } from "../history.ts";
import { median } from "../latencies.ts";
import type { Rig, Scenario } from "../rig.ts";
import { ratio } from "../rounds.ts";
import { atLeast, perSecond, type Row, times } from "../row.ts";
import { register, seedPlace } from "../seeded-place.ts";
import { type BenchServer, startServer } from "../server.ts";
import { BATCH_ITEMS, batchOf, PAUSED_ACTION, payloadOf, publishOf, type RequestSpec } from "../workload.ts";

/** Runs on a database server of its own that makes each commit durable. */
async function onCluster<T>(work: (cluster: Cluster) => Promise<T>): Promise<T> {
  const cluster = await startCluster(DURABLE);
  try {
    return await work(cluster);
  } finally {
    await cluster.stop();
  }
}

/** Requests a second over so many connections. */
async function requestRate(
  rig: Rig,
  { port, token }: BenchServer,
  how: {
    readonly request: RequestSpec;
    readonly connections: number;
    readonly warmUpMs: number;
    readonly durationMs: number;
  },
): Promise<number> {
  return (await rig.load.call("closed", { port, token, ...how })).ratePerS;
}

const PUBLISHING = { warmUpMs: 500, durationMs: 2_000 };
const BATCH = { request: batchOf(PAUSED_ACTION), connections: 8 };
const SINGLE = { request: publishOf(PAUSED_ACTION), connections: 64 };
const BATCH_TARGET = 0.5;
const MOST_NODES = 3;

const INSERT = `INSERT INTO evreg.event (rowid, action_id, revision, timestamped_ms, payload)
  SELECT $2 + n, $3, 1, $4, convert_to(value, 'UTF8') FROM jsonb_array_elements_text($1) WITH ORDINALITY AS e (value, n)`;

export const nodes: Scenario = {
  name: "nodes",
  summary:
    "On PostgreSQL: publishing beside the same rows from one connection, and deliveries by 1 to 3 nodes.",
  isOnlyByName: true,
  run: (rig) => onCluster((cluster) => measureNodes(rig, cluster)),
};

async function measureNodes(rig: Rig, cluster: Cluster): Promise<readonly Row[]> {
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
    const batches = await requestRate(rig, first, { ...BATCH, ...PUBLISHING });
    const single = await requestRate(rig, first, { ...SINGLE, ...PUBLISHING });
    return { raw, batch: batches * BATCH_ITEMS, single };
  });
  const rates = await deliveryRates(rig, first, () => newNode("evreg"));
  const [raw, batch] = [rounds.map((round) => round.raw), rounds.map((round) => round.batch)];
  return [
    {
      scenario: "nodes, batch",
      ceiling: `raw inserts ${perSecond(median(raw))}`,
      measured: perSecond(median(batch)),
      ...atLeast(ratio(batch, raw), BATCH_TARGET),
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
    for (
      const untilMs = startedMs + PUBLISHING.durationMs;
      performance.now() < untilMs;
      last += BATCH_ITEMS
    ) {
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

/** A few full pages of lists. */
const EMPTY_EVENTS = 1_000;
const HUNG_HANDLERS = 50;
/** Of the filled database. */
const WAITING_EVENTS = 2_000;
/** Of the other one: enough that its hung handlers have as much under way, so that the number that waits is all that differs. */
const FEW_WAITING_EVENTS = 100;
const READING = { connections: 4, warmUpMs: 200, durationMs: 500 };
const FILLED_TARGET = 0.8;
/** They look at all that waits. */
const COUNTS_WHAT_WAITS = new Set(["deliveries, pending", "figures of an hour"]);

export const filled: Scenario = {
  name: "filled",
  summary: "On PostgreSQL with a month's events and 100,000 deliveries waiting, beside one with hardly any.",
  isOnlyByName: true,
  run: (rig) =>
    onCluster(async (cluster) => {
      const few = { events: EMPTY_EVENTS, waiting: FEW_WAITING_EVENTS };
      const many = { events: rig.options.historyEvents, waiting: WAITING_EVENTS };
      const empty = await databaseWith(rig, cluster, "empty", few);
      return measureFilled(rig, empty, await databaseWith(rig, cluster, "filled", many));
    }),
};

interface FilledDatabase {
  readonly server: BenchServer;
  readonly history: History;
}

/** A node on a database with so many events, and so many for each handler that never answers. */
async function databaseWith(
  rig: Rig,
  cluster: Cluster,
  name: string,
  { events, waiting }: { readonly events: number; readonly waiting: number },
): Promise<FilledDatabase> {
  rig.options.say(`filled: filling a database with ${events.toLocaleString("en")} events`);
  await cluster.run(`CREATE DATABASE ${name}`);
  const empty = { ...rig.newPlace(), database: cluster.url(name) };
  const handler = await rig.handler("fast", "orders");
  const { place, history } = await seedPlace(empty, handler, events, (maker) => subscribeSpread(rig, maker));
  await rig.fill(place, await rig.hungHandlers(HUNG_HANDLERS), waiting);
  return { server: await startServer(place), history };
}

async function measureFilled(rig: Rig, empty: FilledDatabase, full: FilledDatabase): Promise<readonly Row[]> {
  const rows: Row[] = [];
  const add = async (
    name: string,
    rateOf: (database: FilledDatabase) => Promise<number>,
    target: number | undefined,
  ): Promise<void> => {
    const rounds = await rig.inRounds(`filled, ${name}`, async () => ({
      few: await rateOf(empty),
      many: await rateOf(full),
    }));
    const [few, many] = [rounds.map((round) => round.few), rounds.map((round) => round.many)];
    rows.push({
      scenario: `filled, ${name}`,
      ceiling: `empty ${perSecond(median(few))}`,
      measured: perSecond(median(many)),
      ...(target === undefined ? { figure: times(ratio(many, few)) } : atLeast(ratio(many, few), target)),
      detail: rounds,
    });
  };
  await add("claimed and delivered", ({ server }) => deliverSpread(rig, server), FILLED_TARGET);
  const paths = pathsOf(full.history);
  for (const name of paths.keys()) {
    const target = COUNTS_WHAT_WAITS.has(name) ? undefined : FILLED_TARGET;
    await add(
      name,
      ({ server, history }) =>
        requestRate(rig, server, { ...READING, request: { path: pathsOf(history).get(name)! } }),
      target,
    );
  }
  for (const { server } of [empty, full]) await server.child.end("SIGKILL");
  return rows;
}

/** What is read, by what it is called. */
function pathsOf(history: History): ReadonlyMap<string, string> {
  const limit = "limit=50";
  return new Map([
    ...eventListings(history),
    ["deliveries", `/v1/deliveries?${limit}`],
    ["deliveries, delivered", `/v1/deliveries?${limit}&status=delivered`],
    ["deliveries of a subscription", `/v1/deliveries?${limit}&subscription=2`],
    ["deliveries of an action", `/v1/deliveries?${limit}&action=invoice.paid`],
    ["deliveries, pending", `/v1/deliveries?${limit}&status=pending`],
    ["figures of an hour", "/v1/stats"],
  ]);
}
