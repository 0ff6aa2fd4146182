import { type Cluster, DURABLE, startCluster } from "../../support/postgres.ts";
import { deliverSpread, subscribeSpread } from "../arrivals.ts";
import { eventListings, type History } from "../history.ts";
import { median } from "../latencies.ts";
import type { Rig, Scenario } from "../rig.ts";
import { atLeast, perSecond, type Row, times } from "../row.ts";
import { seedPlace } from "../seeded-place.ts";
import { type BenchServer, startServer } from "../server.ts";

/** A few full pages of lists. */
const EMPTY_EVENTS = 1_000;
const HUNG_HANDLERS = 50;
/** Of the filled database. */
const WAITING_EVENTS = 2_000;
/** Of the other one: enough that its hung handlers have as much under way, so that the number that waits is all that differs. */
const FEW_WAITING_EVENTS = 100;
const CONNECTIONS = 4;
const WARM_UP_MS = 200;
const DURATION_MS = 500;
const TARGET = 0.8;
/** They look at all that waits. */
const COUNTS_WHAT_WAITS = new Set(["deliveries, pending", "figures of an hour"]);

export const filled: Scenario = {
  name: "filled",
  summary: "On PostgreSQL with a month's events and 100,000 deliveries waiting, beside one with hardly any.",
  isOnlyByName: true,
  async run(rig) {
    const cluster = await startCluster(DURABLE);
    try {
      const few = { events: EMPTY_EVENTS, waiting: FEW_WAITING_EVENTS };
      const many = { events: rig.options.historyEvents, waiting: WAITING_EVENTS };
      const empty = await databaseWith(rig, cluster, "empty", few);
      return await measure(rig, empty, await databaseWith(rig, cluster, "filled", many));
    } finally {
      await cluster.stop();
    }
  },
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

async function measure(rig: Rig, empty: FilledDatabase, full: FilledDatabase): Promise<readonly Row[]> {
  const rows: Row[] = [];
  const add = async (
    name: string,
    rateOf: (database: FilledDatabase) => Promise<number>,
    target: number | undefined,
  ): Promise<void> => {
    const rates = await rig.inRounds(
      `filled, ${name}`,
      async () => [await rateOf(empty), await rateOf(full)] as const,
    );
    const ratio = median(rates.map(([without, withMany]) => withMany / without));
    rows.push({
      scenario: `filled, ${name}`,
      ceiling: `empty ${perSecond(median(rates.map(([without]) => without)))}`,
      measured: perSecond(median(rates.map(([, withMany]) => withMany))),
      ...(target === undefined ? { figure: times(ratio) } : atLeast(ratio, target)),
      detail: rates,
    });
  };
  await add("claimed and delivered", ({ server }) => deliverSpread(rig, server), TARGET);
  const paths = pathsOf(full.history);
  for (const name of paths.keys()) {
    const target = COUNTS_WHAT_WAITS.has(name) ? undefined : TARGET;
    await add(name, ({ server, history }) => readRate(rig, server, pathsOf(history).get(name)!), target);
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

async function readRate(rig: Rig, { port, token }: BenchServer, path: string): Promise<number> {
  const { ratePerS } = await rig.load.call("closed", {
    port,
    token,
    request: { path },
    connections: CONNECTIONS,
    warmUpMs: WARM_UP_MS,
    durationMs: DURATION_MS,
  });
  return ratePerS;
}
