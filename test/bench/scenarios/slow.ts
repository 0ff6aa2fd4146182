import { arrivalTimes } from "../arrivals.ts";
import { deliverAll, fill } from "../backlogs.ts";
import { type LatencySummary, median } from "../latencies.ts";
import type { Rig } from "../rig.ts";
import { mb, ms, perSecond, type Row } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import { startServer } from "../server.ts";
import { DELIVERED_ACTION } from "../workload.ts";

/** Backlogs: how many handlers, how long each takes, how much waits for them together, and what is asked for. */
const BACKLOGS = [
  { handlers: 1, tookMs: 500, deliveries: 10_000, leastPerS: 400 },
  { handlers: 50, tookMs: 300, deliveries: 30_000, leastPerS: 4_000 },
] as const;

/** Live events, more at a time than were ever let in before anything was known of a handler. */
const LIVE = { tookMs: 200, ratePerS: 300, warmUpMs: 3_000, durationMs: 5_000 } as const;
const LONGEST_WAIT_MS = 100;
const MOST_MEMORY_MB = 300;

export const slow: Scenario = {
  name: "slow",
  summary: "Handlers that take 200 to 500 ms: two backlogs, and live events.",
  async run(rig) {
    const rows: Row[] = [];
    for (const backlog of BACKLOGS) rows.push(await backlogRow(rig, backlog));
    rows.push(await liveRow(rig));
    const peaks = rig.observations.filter(({ scenario }) => scenario === "slow").map(({ peakMb }) => peakMb);
    const peak = Math.max(...peaks);
    return [
      ...rows,
      {
        scenario: "slow, memory",
        ceiling: "-",
        measured: mb(peak),
        figure: mb(peak),
        target: `≤ ${mb(MOST_MEMORY_MB)}`,
        met: peak <= MOST_MEMORY_MB,
        detail: peaks,
      },
    ];
  },
};

async function backlogRow(rig: Rig, backlog: (typeof BACKLOGS)[number]): Promise<Row> {
  const { handlers, tookMs, deliveries, leastPerS } = backlog;
  const name = `${handlers} of ${tookMs} ms`;
  const handler = await rig.handler(`slow/${tookMs}`, String(handlers));
  const rates: number[] = [];
  for (let round = 0; round < rig.options.rounds; round += 1) {
    rig.options.say(`slow, round ${round + 1}: ${name}`);
    const place = rig.newPlace();
    const all = Array.from({ length: handlers }, () => handler);
    await fill(place, all, deliveries / handlers);
    await rig.receiver.call("reset", { record: false });
    const server = await startServer(place);
    const { pathname: path } = new URL(handler);
    const delivering = () => deliverAll(rig, server, { path, deliveries });
    rates.push(await rig.observe("slow", name, server, delivering, () => deliveries));
    await rig.retire("slow", name, server);
  }
  const rate = median(rates);
  return {
    scenario: `slow, ${name}`,
    ceiling: "-",
    measured: `${perSecond(rate)} deliveries`,
    figure: perSecond(rate),
    target: `≥ ${perSecond(leastPerS)}`,
    met: rate >= leastPerS,
    detail: rates,
  };
}

/** From publishing to the handler: what piles up waits longer and longer. */
async function liveRow(rig: Rig): Promise<Row> {
  const { tookMs, ...pace } = LIVE;
  const handler = await rig.handler(`slow/${tookMs}`, "live");
  const runs: LatencySummary[] = [];
  for (let round = 0; round < rig.options.rounds; round += 1) {
    rig.options.say(`slow, round ${round + 1}: live`);
    const server = await rig.emptyServer(handler);
    const { port, token } = server;
    const { pathname: path } = new URL(handler);
    const live = () => arrivalTimes(rig, { port, token, action: DELIVERED_ACTION, path, ...pace });
    runs.push(await rig.observe("slow", "live", server, live, ({ published }) => published));
    await rig.retire("slow", "live", server);
  }
  const p99Ms = median(runs.map((run) => run.p99Ms));
  const p50Ms = median(runs.map((run) => run.p50Ms));
  return {
    scenario: `slow, ${pace.ratePerS} a second to one of ${tookMs} ms`,
    ceiling: "-",
    measured: `p50 ${ms(p50Ms)}, p99 ${ms(p99Ms)}`,
    figure: ms(p99Ms),
    target: `≤ ${ms(LONGEST_WAIT_MS)}`,
    met: p99Ms <= LONGEST_WAIT_MS,
    detail: runs,
  };
}
