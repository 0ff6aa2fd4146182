import { startChild } from "../child.ts";
import type { EchoCalls } from "../echo.ts";
import { median } from "../latencies.ts";
import type { ClosedLoopResult } from "../load-closed.ts";
import { countEvents } from "../registry.ts";
import type { Rig } from "../rig.ts";
import { rateRows } from "../rounds.ts";
import { ms } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import type { BenchServer } from "../server.ts";
import { inTurns } from "../turns.ts";
import { eventBody, PAUSED_ACTION } from "../workload.ts";

const CONNECTIONS = 64;
const DURATION_MS = 2_000;
/** Until the code that is run most is compiled; longer in the first round. */
const WARM_UP_MS = 300;
const FIRST_WARM_UP_MS = 1_500;
const TARGET = 0.75;

export const publish: Scenario = {
  name: "publish",
  summary: "Single publishes over 64 connections, beside a bare h3 echo of the same body.",
  async run(rig) {
    const echo = startChild<EchoCalls>("echo.ts");
    const echoPort = await echo.call("listen");
    const servers = await rig.targets();
    const { ceilings: echoes, measured: published } = await inTurns(rig, {
      scenario: "publish",
      ceiling: (round) => load(rig, round, { port: echoPort, expect: 200 }),
      servers,
      measure: (server, round) => publishOn(rig, round, server),
      eventsOf: ({ answeredInAll }) => answeredInAll,
    });
    await echo.end("SIGKILL");
    for (const [name, server] of servers) await rig.retire("publish", name, server);
    return rateRows({
      scenario: "publish",
      ceiling: { name: "h3 echo", rates: echoes.map(({ ratePerS }) => ratePerS) },
      servers: new Map([...published].map(([name, runs]) => [name, runs.map(({ ratePerS }) => ratePerS)])),
      target: TARGET,
      unit: "events",
      notes: new Map([...published].map(([name, runs]) => [name, latencyNote(runs)])),
      detail: { echoes, published: Object.fromEntries(published) },
    });
  },
};

function load(
  rig: Rig,
  round: number,
  to: { port: number; token?: string; expect: number },
): Promise<ClosedLoopResult> {
  return rig.load.call("closed", {
    ...to,
    request: { method: "POST", path: "/v1/events", body: eventBody(PAUSED_ACTION) },
    connections: CONNECTIONS,
    warmUpMs: round === 0 ? FIRST_WARM_UP_MS : WARM_UP_MS,
    durationMs: DURATION_MS,
  });
}

async function publishOn(rig: Rig, round: number, server: BenchServer): Promise<ClosedLoopResult> {
  const before = await countEvents(server);
  const { port, token } = server;
  const result = await load(rig, round, { port, token, expect: 201 });
  const stored = (await countEvents(server)) - before;
  if (stored !== result.answeredInAll) {
    throw new Error(`${result.answeredInAll} publishes were answered, and ${stored} events are stored.`);
  }
  return result;
}

function latencyNote(runs: readonly ClosedLoopResult[]): string {
  const p50 = median(runs.map(({ latency }) => latency.p50Ms));
  const p99 = median(runs.map(({ latency }) => latency.p99Ms));
  const share = median(runs.map(({ loadShare }) => loadShare));
  return `p50 ${ms(p50)}, p99 ${ms(p99)}, load ${Math.round(share * 100)} % busy`;
}
