import { setTimeout as pause } from "node:timers/promises";
import { Latencies, type LatencySummary } from "./latencies.ts";
import type { Rig } from "./rig.ts";
import { eventBody } from "./workload.ts";

export interface ArrivalRun {
  readonly port: number;
  readonly token?: string;
  readonly action: string;
  /** Where its events arrive at the receiver. */
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
const LONGEST_MS = 20_000;

/** Publishes at a steady pace; answers the times from when a publish was due until the handler had its event. */
export async function arrivalTimes(rig: Rig, run: ArrivalRun): Promise<Arrivals> {
  const { action, path, ...pace } = run;
  await rig.receiver.call("reset", { record: true });
  const requests = [{ method: "POST" as const, path: "/v1/events", body: eventBody(action) }];
  const options = { ...pace, requests, connections: CONNECTIONS, expect: 201 };
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
