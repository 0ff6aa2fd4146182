import { type Cluster, DURABLE, startCluster } from "../../support/postgres.ts";
import { eventListings, HISTORY_ACTIONS, type History, historyUntil } from "../history.ts";
import { median } from "../latencies.ts";
import { register } from "../registry.ts";
import type { Rig } from "../rig.ts";
import { atLeast, perSecond, type Row } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import { seedDatabase } from "../seed-database.ts";
import { type BenchServer, startServer } from "../server.ts";
import { deliverSpread, subscribeSpread } from "../spread.ts";
import { BATCH_ITEMS, payloadOf, SCHEMA, WAITING_ACTION } from "../workload.ts";

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
      const empty = await databaseWith(rig, cluster, "empty", EMPTY_EVENTS);
      const full = await databaseWith(rig, cluster, "filled", rig.options.historyEvents);
      await waitForHung(rig, empty.server, FEW_WAITING_EVENTS);
      await waitForHung(rig, full.server, WAITING_EVENTS);
      return await measure(rig, empty, full);
    } finally {
      await cluster.stop();
    }
  },
};

interface FilledDatabase {
  readonly server: BenchServer;
  readonly history: History;
}

/** A node on a database with so many events. */
async function databaseWith(
  rig: Rig,
  cluster: Cluster,
  name: string,
  events: number,
): Promise<FilledDatabase> {
  rig.options.say(`filled: filling a database with ${events.toLocaleString("en")} events`);
  await cluster.run(`CREATE DATABASE ${name}`);
  const place = { ...rig.newPlace(), database: cluster.url(name) };
  const maker = await startServer(place);
  await register(
    maker,
    await rig.handler("fast", "orders"),
    HISTORY_ACTIONS.slice(2).map(({ action }) => action),
  );
  await subscribeSpread(rig, maker);
  await maker.stop();
  const history = historyUntil(Date.now(), events);
  await seedDatabase(cluster.url(name), history);
  return { server: await startServer(place), history };
}

/** Publishes events to handlers that never answer. */
async function waitForHung(rig: Rig, server: BenchServer, waiting: number): Promise<void> {
  const action = WAITING_ACTION;
  await server.api("POST", "/v1/actions", { action, application: "shop", schemata: SCHEMA });
  for (let number = 0; number < HUNG_HANDLERS; number += 1) {
    const handler = await rig.handler("hang", String(number));
    await server.api("POST", "/v1/subscriptions", {
      application: "billing",
      subscription: `hung-${number}`,
      action,
      handler,
    });
  }
  const events = Array.from({ length: Math.min(waiting, BATCH_ITEMS) }, (_, item) => ({
    action,
    payload: JSON.parse(payloadOf(item)) as object,
  }));
  for (let sent = 0; sent < waiting; sent += events.length) {
    await server.api("POST", "/v1/events/batch", { events });
  }
}

async function measure(rig: Rig, empty: FilledDatabase, full: FilledDatabase): Promise<readonly Row[]> {
  const rows: Row[] = [];
  const add = async (
    name: string,
    rateOf: (database: FilledDatabase) => Promise<number>,
    target: number | undefined,
  ): Promise<void> => {
    const rates: (readonly [number, number])[] = [];
    for (let round = 0; round < rig.options.rounds; round += 1) {
      rig.options.say(`filled, round ${round + 1}: ${name}`);
      rates.push([await rateOf(empty), await rateOf(full)]);
    }
    const ratio = median(rates.map(([without, withMany]) => withMany / without));
    rows.push({
      scenario: `filled, ${name}`,
      ceiling: `empty ${perSecond(median(rates.map(([without]) => without)))}`,
      measured: perSecond(median(rates.map(([, withMany]) => withMany))),
      ...(target === undefined
        ? { figure: ratio.toFixed(2), target: "-", met: true }
        : atLeast(ratio, target)),
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
    expect: 200,
    request: { method: "GET", path },
    connections: CONNECTIONS,
    warmUpMs: WARM_UP_MS,
    durationMs: DURATION_MS,
  });
  return ratePerS;
}
