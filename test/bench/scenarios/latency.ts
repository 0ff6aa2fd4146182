import { type Arrivals, arrivalTimes } from "../arrivals.ts";
import { startChild } from "../child.ts";
import type { HopCalls } from "../hop.ts";
import { type LatencySummary, median } from "../latencies.ts";
import type { Rig } from "../rig.ts";
import { ms, type Row } from "../row.ts";
import type { Scenario } from "../scenario.ts";
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
  summary: "From a publish to its arrival, at 300 events a second, beside one h3 hop and one undici request.",
  async run(rig) {
    const hop = startChild<HopCalls>("hop.ts");
    const port = await hop.call("listen", { handler: await rig.handler("fast", "orders") });
    const targets = await rig.targets();
    const hops: LatencySummary[] = [];
    const seen = new Map<string, LatencySummary[]>();
    for (let round = 0; round < rig.options.rounds; round += 1) {
      rig.options.say(`latency, round ${round + 1}: hop`);
      hops.push(await run(rig, round, { port }));
      for (const [name, server] of targets) {
        rig.options.say(`latency, round ${round + 1}: ${name}`);
        const publishing = () => run(rig, round, server);
        const times = await rig.observe("latency", name, server, publishing, ({ published }) => published);
        seen.set(name, [...(seen.get(name) ?? []), times]);
      }
    }
    await hop.end("SIGKILL");
    for (const [name, server] of targets) await rig.retire("latency", name, server);
    return [...seen].flatMap(([name, runs]) => rowsOf(name, runs, hops));
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

/** How much later than over the hop, by the median of the rounds' differences. */
function rowsOf(
  name: string,
  runs: readonly LatencySummary[],
  hops: readonly LatencySummary[],
): readonly Row[] {
  return TARGETS.map(([percentile, member, mostMs]) => {
    const laterMs = median(runs.map((times, round) => times[member] - (hops[round]?.[member] ?? 0)));
    return {
      scenario: name === "empty" ? `latency ${percentile}` : `latency ${percentile}, ${name}`,
      ceiling: `hop ${ms(median(hops.map((times) => times[member])))}`,
      measured: ms(median(runs.map((times) => times[member]))),
      figure: `+${ms(laterMs)}`,
      target: `≤ +${mostMs} ms`,
      met: laterMs <= mostMs,
      detail: { hops, runs },
    };
  });
}
