import { type Arrivals, arrivalTimes } from "../arrivals.ts";
import type { CeilingCalls } from "../ceilings.ts";
import { type Child, startChild } from "../child.ts";
import { type LatencySummary, median } from "../latencies.ts";
import type { Rig, Scenario } from "../rig.ts";
import { inTurns, ratio, warmUpMs } from "../rounds.ts";
import { atMost, ms, type Row } from "../row.ts";
import type { BenchServer } from "../server.ts";
import { DELIVERED_ACTION, publishOf } from "../workload.ts";

const CONNECTIONS = 64;
const DURATION_MS = 6_000;
const PATH = "/fast/orders";
const DRAIN_MS = 60_000;
const MOST_RATIO = 1.5;

const RATE_PER_S = 300;
const LATENCY_DURATION_MS = 3_000;
const LATER_TARGETS = [
  ["p50", "p50Ms", 0.8],
  ["p99", "p99Ms", 3],
] as const;

/** What is published to; the relay needs no token. */
type Target = Pick<BenchServer, "port"> & Partial<Pick<BenchServer, "token">>;
type CountedTarget = Target & { readonly child: Pick<Child<CeilingCalls>, "call" | "end"> };

/** Processor time of an event, published and delivered, in microseconds. */
interface Spent {
  readonly eventUs: number;
  readonly mainThreadUs: number;
}

export const relay: Scenario = {
  name: "relay",
  summary: "Processor time of an event, published and delivered, beside a bare relay that keeps nothing.",
  async run(rig) {
    const bare = await startRelay(rig);
    const server = await rig.emptyServer();
    const rounds = await rig.inRounds(
      "relay",
      async (round) => [await spent(rig, round, bare), await spent(rig, round, server)] as const,
    );
    await bare.child.end("SIGKILL");
    await rig.retire("relay", "empty", server);
    return [
      spentRow(
        rounds.map(([relayed]) => relayed),
        rounds.map(([, kept]) => kept),
      ),
    ];
  },
};

export const latency: Scenario = {
  name: "latency",
  summary: "From a publish to its arrival, at 300 events a second, beside a bare relay that keeps nothing.",
  async run(rig) {
    const bare = await startRelay(rig);
    const servers = await rig.targets();
    const { ceilings, measured } = await inTurns(rig, {
      scenario: "latency",
      ceiling: (round) => arrive(rig, round, bare),
      servers,
      measure: (server, round) => arrive(rig, round, server),
      eventsOf: ({ published }) => published,
    });
    await bare.child.end("SIGKILL");
    return [...measured].flatMap(([name, runs]) => latencyRows(name, runs, ceilings));
  },
};

async function startRelay(rig: Rig): Promise<CountedTarget> {
  const child = startChild<CeilingCalls>("ceilings.ts");
  return { child, port: await child.call("listenToRelay", { handler: await rig.handler("fast", "orders") }) };
}

/** The whole of a round: its warm-up and its last deliveries count as well, in time and in events. */
async function spent(rig: Rig, round: number, { child, ...target }: CountedTarget): Promise<Spent> {
  await rig.receiver.call("reset", { record: false });
  await child.call("begin");
  const { answeredInAll: events } = await rig.load.call("closed", {
    ...addressOf(target),
    request: publishOf(DELIVERED_ACTION),
    connections: CONNECTIONS,
    warmUpMs: warmUpMs(round),
    durationMs: DURATION_MS,
  });
  const drained = await rig.receiver.call("await", { path: PATH, deliveries: events, timeoutMs: DRAIN_MS });
  if (!drained) throw new Error(`Not all of ${events} published events arrived.`);
  const { processMs, processShare, mainThreadShare } = await child.call("end");
  const eventUs = (processMs * 1_000) / events;
  return { eventUs, mainThreadUs: (eventUs * mainThreadShare) / processShare };
}

function arrive(rig: Rig, round: number, target: Target): Promise<Arrivals> {
  const pace = { ratePerS: RATE_PER_S, warmUpMs: warmUpMs(round), durationMs: LATENCY_DURATION_MS };
  return arrivalTimes(rig, { ...addressOf(target), path: PATH, ...pace });
}

function addressOf({ port, token }: Target): Target {
  return token === undefined ? { port } : { port, token };
}

function spentRow(relayed: readonly Spent[], kept: readonly Spent[]): Row {
  const us = (spends: readonly Spent[], member: keyof Spent): string =>
    `${median(spends.map((spend) => spend[member])).toFixed(0)} µs`;
  const figures = (spends: readonly Spent[]) => spends.map(({ eventUs }) => eventUs);
  return {
    scenario: "relay",
    ceiling: `relay ${us(relayed, "eventUs")}`,
    measured: `${us(kept, "eventUs")} an event, ${us(kept, "mainThreadUs")} of it in the main thread`,
    ...atMost(ratio(figures(kept), figures(relayed)), MOST_RATIO),
    detail: { relayed, kept },
  };
}

/** How much later than over the relay, by the median of the rounds' differences. */
function latencyRows(
  name: string,
  runs: readonly LatencySummary[],
  relayed: readonly LatencySummary[],
): readonly Row[] {
  const rows: Row[] = [];
  for (const [percentile, member, mostMs] of LATER_TARGETS) {
    const laterMs = median(runs.map((run, round) => run[member] - (relayed[round]?.[member] ?? 0)));
    rows.push({
      scenario: name === "empty" ? `latency ${percentile}` : `latency ${percentile}, ${name}`,
      ceiling: `relay ${ms(median(relayed.map((run) => run[member])))}`,
      measured: ms(median(runs.map((run) => run[member]))),
      ...atMost(laterMs, mostMs, (value) => `+${ms(value)}`),
      detail: { relayed, runs },
    });
  }
  return rows;
}
