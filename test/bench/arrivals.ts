import { setTimeout as pause } from "node:timers/promises";
import { Latencies, type LatencySummary } from "./latencies.ts";
import type { Rig } from "./rig.ts";
import type { BenchServer } from "./server.ts";
import { BATCH_ITEMS, DELIVERED_ACTION, payloadOf, publishOf, SCHEMA } from "./workload.ts";

// What arrives at the handlers, and when: of events published at a steady pace, of a backlog, and of events for many subscriptions.

export interface ArrivalRun {
  readonly port: number;
  readonly token?: string;
  /** Where the events of `DELIVERED_ACTION` arrive at the receiver. */
  readonly path: string;
  readonly ratePerS: number;
  readonly warmUpMs: number;
  readonly durationMs: number;
}

/** Of the events whose times count. */
export interface Arrivals extends LatencySummary {
  /** Those of the warm-up included. */
  readonly published: number;
}

const CONNECTIONS = 16;
const LONGEST_MS = 120_000;

/** Publishes at a steady pace; answers the times from when a publish was due until the handler had its event. */
export async function arrivalTimes(rig: Rig, run: ArrivalRun): Promise<Arrivals> {
  const { path, ...pace } = run;
  await rig.receiver.call("reset", { record: true });
  const options = { ...pace, requests: [publishOf(DELIVERED_ACTION)], connections: CONNECTIONS };
  const { events, answered, unsent } = await rig.load.call("pacedEvents", options);
  if (unsent > 0) throw new Error(`${unsent} publishes found no free connection.`);
  const awaited = { path, deliveries: answered, timeoutMs: LONGEST_MS };
  if (!(await rig.receiver.call("await", awaited))) {
    const { deliveries: received } = await rig.receiver.call("read", { path });
    throw new Error(`Of ${answered} published events ${received} arrived.`);
  }
  const arrivals = await allArrivals(rig, path, events);
  const latencies = new Latencies();
  for (const [rowid, dueMs] of events) latencies.add((arrivals.get(rowid) ?? Number.NaN) - dueMs);
  return { ...latencies.summary(), published: answered };
}

/** Where others arrive as well, their number says nothing of these. */
async function allArrivals(
  rig: Rig,
  path: string,
  events: readonly (readonly [rowid: number, dueMs: number])[],
): Promise<ReadonlyMap<number, number>> {
  const endMs = performance.now() + LONGEST_MS;
  for (;;) {
    const arrivals = new Map(await rig.receiver.call("arrivals", { path }));
    const missing = events.filter(([rowid]) => !arrivals.has(rowid)).length;
    if (missing === 0) return arrivals;
    if (performance.now() > endMs)
      throw new Error(`${missing} of ${events.length} published events did not arrive.`);
    await pause(20);
  }
}

/** From the first arrival until all are stored as delivered; answers deliveries a second. */
export async function deliverAll(
  rig: Rig,
  server: BenchServer,
  { path, deliveries: wanted }: { readonly path: string; readonly deliveries: number },
): Promise<number> {
  const inTime = await rig.receiver.call("await", { path, deliveries: wanted, timeoutMs: LONGEST_MS });
  const { firstMs, deliveries, requests } = await rig.receiver.call("read", { path });
  if (!inTime) throw new Error(`${deliveries} of ${wanted} deliveries arrived in ${LONGEST_MS / 1_000} s.`);
  while ((await unfinished(server, "pending")) || (await unfinished(server, "delivering"))) await pause(10);
  const storedMs = performance.timeOrigin + performance.now();
  if (requests !== wanted) throw new Error(`${requests} requests came for ${wanted} deliveries.`);
  return wanted / ((storedMs - firstMs) / 1_000);
}

async function unfinished(server: BenchServer, status: string): Promise<boolean> {
  const { data } = await server.api<{ data: unknown[] }>("GET", `/v1/deliveries?status=${status}&limit=1`);
  return data.length > 0;
}

/** Each of its events goes to many subscriptions. */
const SPREAD_ACTION = "parcel.moved";
const SPREAD = Array.from({ length: 24 }, (_, index) => `spread-${index}`);
const SPREAD_BATCHES = 4;
const SPREAD_EVENTS = SPREAD_BATCHES * BATCH_ITEMS;

export async function subscribeSpread(rig: Rig, server: BenchServer): Promise<void> {
  await server.send("POST", "/v1/actions", { action: SPREAD_ACTION, application: "shop", schemata: SCHEMA });
  for (const subscription of SPREAD) {
    const handler = await rig.handler("fast", subscription);
    await server.send("POST", "/v1/subscriptions", {
      application: "shop",
      subscription,
      action: SPREAD_ACTION,
      handler,
    });
  }
}

/** Publishes, and answers deliveries a second up to the last one. */
export async function deliverSpread(rig: Rig, server: BenchServer): Promise<number> {
  const events = Array.from({ length: BATCH_ITEMS }, (_, item) => ({
    action: SPREAD_ACTION,
    payload: JSON.parse(payloadOf(item)) as object,
  }));
  await rig.receiver.call("reset", { record: false });
  const startedMs = performance.timeOrigin + performance.now();
  for (let sent = 0; sent < SPREAD_BATCHES; sent += 1)
    await server.send("POST", "/v1/events/batch", { events });
  let lastMs = startedMs;
  for (const name of SPREAD) {
    const path = `/fast/${name}`;
    const wanted = { path, deliveries: SPREAD_EVENTS, timeoutMs: LONGEST_MS };
    if (!(await rig.receiver.call("await", wanted))) throw new Error(`${name} did not get everything.`);
    lastMs = Math.max(lastMs, (await rig.receiver.call("read", { path })).lastMs);
  }
  return (SPREAD_EVENTS * SPREAD.length) / ((lastMs - startedMs) / 1_000);
}
