import { type Arrivals, arrivalTimes } from "../arrivals.ts";
import { startChild } from "../child.ts";
import { type LatencySummary, median } from "../latencies.ts";
import type { RelayCalls } from "../relay.ts";
import type { Rig } from "../rig.ts";
import { ms, type Row } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import { inTurns } from "../turns.ts";
import { DELIVERED_ACTION } from "../workload.ts";

const RATE_PER_S = 300;
const DURATION_MS = 3_000;
const WARM_UP_MS = 300;
const FIRST_WARM_UP_MS = 1_500;
const PATH = "/fast/orders";
const TARGETS = [
  ["p50", "p50Ms", 0.8],
  ["p99", "p99Ms", 3],
] as const;

export const latency: Scenario = {
  name: "latency",
  summary: "From a publish to its arrival, at 300 events a second, beside a bare relay that keeps nothing.",
  async run(rig) {
    const relay = startChild<RelayCalls>("relay.ts");
    const port = await relay.call("listen", { handler: await rig.handler("fast", "orders") });
    const servers = await rig.targets();
    const { ceilings, measured } = await inTurns(rig, {
      scenario: "latency",
      ceiling: (round) => run(rig, round, { port }),
      servers,
      measure: (server, round) => run(rig, round, server),
      eventsOf: ({ published }) => published,
    });
    await relay.end("SIGKILL");
    for (const [name, server] of servers) await rig.retire("latency", name, server);
    return [...measured].flatMap(([name, runs]) => rowsOf(name, runs, ceilings));
  },
};

function run(rig: Rig, round: number, { port, token }: { port: number; token?: string }): Promise<Arrivals> {
  return arrivalTimes(rig, {
    port,
    ...(token === undefined ? {} : { token }),
    action: DELIVERED_ACTION,
    path: PATH,
    ratePerS: RATE_PER_S,
    warmUpMs: round === 0 ? FIRST_WARM_UP_MS : WARM_UP_MS,
    durationMs: DURATION_MS,
  });
}

/** How much later than over the relay, by the median of the rounds' differences. */
function rowsOf(
  name: string,
  runs: readonly LatencySummary[],
  relayed: readonly LatencySummary[],
): readonly Row[] {
  return TARGETS.map(([percentile, member, mostMs]) => {
    const laterMs = median(runs.map((times, round) => times[member] - (relayed[round]?.[member] ?? 0)));
    return {
      scenario: name === "empty" ? `latency ${percentile}` : `latency ${percentile}, ${name}`,
      ceiling: `relay ${ms(median(relayed.map((times) => times[member])))}`,
      measured: ms(median(runs.map((times) => times[member]))),
      figure: `+${ms(laterMs)}`,
      target: `≤ +${mostMs} ms`,
      met: laterMs <= mostMs,
      detail: { relayed, runs },
    };
  });
}
