import { join } from "node:path";
import { startChild } from "../child.ts";
import type { CeilingCalls } from "../ceilings.ts";
import { median } from "../latencies.ts";
import type { ClosedLoopResult } from "../load.ts";
import type { Rig, Scenario } from "../rig.ts";
import { inTurns, latencies, rateRows, warmUpMs } from "../rounds.ts";
import { atLeast, perSecond, type Row } from "../row.ts";
import { countEvents } from "../seeded-place.ts";
import type { BenchServer } from "../server.ts";
import { BATCH_ITEMS, batchOf, PAUSED_ACTION, publishOf, type RequestSpec } from "../workload.ts";

const CONNECTIONS = 64;
/** Of 2, 4, 8 and 16 the least that does about as much as any: 84, 92, 95 and 97 thousand events a second. */
const BATCH_CONNECTIONS = 8;
const DURATION_MS = 2_000;
const TARGET = 0.75;
const BATCH_TARGET = 0.7;
/** Held to only on a machine on which the raw inserts reach `RAW_FOR_TARGET_PER_S`. */
const BATCH_TARGET_PER_S = 60_000;
const RAW_FOR_TARGET_PER_S = 120_000;

const SINGLE = { request: publishOf(PAUSED_ACTION), connections: CONNECTIONS };
const BATCH = { request: batchOf(PAUSED_ACTION), connections: BATCH_CONNECTIONS };

export const publish: Scenario = {
  name: "publish",
  summary: "Single publishes over 64 connections, beside a bare h3 echo of the same body.",
  async run(rig) {
    const echo = startChild<CeilingCalls>("ceilings.ts");
    const port = await echo.call("listenToEcho");
    const servers = await rig.targets();
    const { ceilings, measured } = await inTurns(rig, {
      scenario: "publish",
      ceiling: (round) => load(rig, round, { ...SINGLE, port, expect: 200 }),
      servers,
      measure: (server, round) => publishOn(rig, round, server, SINGLE, 1),
      eventsOf: ({ events }) => events,
    });
    await echo.end("SIGKILL");
    return rateRows({
      scenario: "publish",
      ceiling: { name: "h3 echo", rates: ceilings.map(({ ratePerS }) => ratePerS) },
      servers: ratesOf(measured),
      target: TARGET,
      unit: "events",
      notes: new Map([...measured].map(([name, runs]) => [name, noteOf(runs)])),
      detail: { echoes: ceilings, published: Object.fromEntries(measured) },
    });
  },
};

export const batch: Scenario = {
  name: "batch",
  summary: "Batches of 500 events, beside the same rows straight into libSQL.",
  async run(rig) {
    const raw = startChild<CeilingCalls>("ceilings.ts");
    await raw.call("openFile", { file: join(rig.newFolder(), "raw.db") });
    await raw.call("insert", { durationMs: warmUpMs(1) });
    const servers = await rig.targets();
    const { ceilings, measured } = await inTurns(rig, {
      scenario: "batch",
      ceiling: () => raw.call("insert", { durationMs: DURATION_MS }),
      servers,
      measure: (server, round) => publishOn(rig, round, server, BATCH, BATCH_ITEMS),
      eventsOf: ({ events }) => events,
    });
    await raw.end("SIGKILL");
    const rates = ratesOf(measured);
    const rows: Row[] = [
      ...rateRows({
        scenario: "batch",
        ceiling: { name: "raw inserts", rates: ceilings },
        servers: rates,
        target: BATCH_TARGET,
        unit: "events",
      }),
    ];
    if (median(ceilings) < RAW_FOR_TARGET_PER_S) return rows;
    const rate = median(rates.get("empty") ?? []);
    return [...rows, { scenario: "batch, events a second", ...atLeast(rate, BATCH_TARGET_PER_S, perSecond) }];
  },
};

interface Publishing {
  readonly request: RequestSpec;
  readonly connections: number;
}

type Target = Publishing & { port: number; token?: string; expect?: number };

function load(rig: Rig, round: number, to: Target): Promise<ClosedLoopResult> {
  return rig.load.call("closed", { ...to, warmUpMs: warmUpMs(round), durationMs: DURATION_MS });
}

/** A run on a server; its rate is in events, and it has stored exactly those that were answered. */
interface Published extends ClosedLoopResult {
  /** With those of the warm-up. */
  readonly events: number;
}

async function publishOn(
  rig: Rig,
  round: number,
  server: BenchServer,
  what: Publishing,
  items: number,
): Promise<Published> {
  const before = await countEvents(server);
  const { port, token } = server;
  const result = await load(rig, round, { ...what, port, token });
  const events = (await countEvents(server)) - before;
  if (events !== result.answeredInAll * items) {
    throw new Error(`${result.answeredInAll} requests were answered, and ${events} events are stored.`);
  }
  return { ...result, ratePerS: result.ratePerS * items, events };
}

function ratesOf(measured: ReadonlyMap<string, readonly Published[]>): Map<string, number[]> {
  return new Map([...measured].map(([name, runs]) => [name, runs.map(({ ratePerS }) => ratePerS)]));
}

function noteOf(runs: readonly ClosedLoopResult[]): string {
  const share = median(runs.map(({ loadShare }) => loadShare));
  return `${latencies(runs.map(({ latency }) => latency))}, load ${Math.round(share * 100)} % busy`;
}
