import { arrivalTimes, deliverAll } from "../arrivals.ts";
import type { CeilingCalls } from "../ceilings.ts";
import { startChild } from "../child.ts";
import { median } from "../latencies.ts";
import type { Rig, Scenario } from "../rig.ts";
import { latencies, rateRows } from "../rounds.ts";
import { atLeast, atMost, mb, ms, perSecond, type Row } from "../row.ts";
import { type ServerPlace, startServer } from "../server.ts";

/** Of the backlog to one fast handler. */
const EVENTS = 50_000;
const TARGET = 0.85;

export const backlog: Scenario = {
  name: "backlog",
  summary: "50,000 waiting deliveries to one fast handler, beside a bare undici loop.",
  async run(rig) {
    const handler = await rig.handler("fast", "backlog");
    const rates = new Map<string, number[]>();
    const loopRates = await rig.inRounds("backlog", async () => {
      const loopRate = await loop(handler);
      const places = new Map([["empty", rig.newPlace()]]);
      if (rig.options.history) places.set(rig.historyName, (await rig.seeded()).place);
      for (const [name, place] of places) {
        const rate = await deliverBacklog(rig, "backlog", name, place, [handler], EVENTS);
        rates.set(name, [...(rates.get(name) ?? []), rate]);
      }
      return loopRate;
    });
    return rateRows({
      scenario: "backlog",
      ceiling: { name: "undici", rates: loopRates },
      servers: rates,
      target: TARGET,
      unit: "deliveries",
    });
  },
};

/** In a new process, as what it is compared with is one. */
async function loop(handler: string): Promise<number> {
  const undici = startChild<CeilingCalls>("ceilings.ts");
  const rate = await undici.call("deliver", { handler, requests: EVENTS });
  await undici.end("SIGKILL");
  return rate;
}

/** Has so many deliveries wait for these handlers, which are at one address, and then starts a server. Answers deliveries a second. */
async function deliverBacklog(
  rig: Rig,
  scenario: string,
  name: string,
  place: ServerPlace,
  handlers: readonly string[],
  deliveries: number,
): Promise<number> {
  await rig.fill(place, handlers, deliveries / handlers.length);
  await rig.receiver.call("reset", { record: false });
  const server = await startServer(place);
  const { pathname: path } = new URL(handlers[0]!);
  const work = () => deliverAll(rig, server, { path, deliveries });
  const rate = await rig.observe(scenario, name, server, work, () => deliveries);
  await rig.retire(scenario, name, server);
  return rate;
}

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
    for (const one of BACKLOGS) rows.push(await backlogRow(rig, one));
    rows.push(await liveRow(rig));
    const peaks = rig.observations.filter(({ scenario }) => scenario === "slow").map(({ peakMb }) => peakMb);
    return [
      ...rows,
      { scenario: "slow, memory", ...atMost(Math.max(...peaks), MOST_MEMORY_MB, mb), detail: peaks },
    ];
  },
};

async function backlogRow(
  rig: Rig,
  { handlers, tookMs, deliveries, leastPerS }: (typeof BACKLOGS)[number],
): Promise<Row> {
  const name = `${handlers} of ${tookMs} ms`;
  const handler = await rig.handler(`slow/${tookMs}`, String(handlers));
  const all = Array.from({ length: handlers }, () => handler);
  const rates = await rig.inRounds(`slow, ${name}`, () =>
    deliverBacklog(rig, "slow", name, rig.newPlace(), all, deliveries),
  );
  const rate = median(rates);
  return {
    scenario: `slow, ${name}`,
    measured: `${perSecond(rate)} deliveries`,
    ...atLeast(rate, leastPerS, perSecond),
    detail: rates,
  };
}

/** From publishing to the handler: what piles up waits longer and longer. */
async function liveRow(rig: Rig): Promise<Row> {
  const { tookMs, ...pace } = LIVE;
  const handler = await rig.handler(`slow/${tookMs}`, "live");
  const runs = await rig.inRounds("slow, live", async () => {
    const server = await rig.emptyServer(handler);
    const { port, token } = server;
    const { pathname: path } = new URL(handler);
    const live = () => arrivalTimes(rig, { port, token, path, ...pace });
    const run = await rig.observe("slow", "live", server, live, ({ published }) => published);
    await rig.retire("slow", "live", server);
    return run;
  });
  return {
    scenario: `slow, ${pace.ratePerS} a second to one of ${tookMs} ms`,
    measured: latencies(runs),
    ...atMost(median(runs.map((run) => run.p99Ms)), LONGEST_WAIT_MS, ms),
    detail: runs,
  };
}
