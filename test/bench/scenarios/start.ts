import { setTimeout as pause } from "node:timers/promises";
import { median } from "../latencies.ts";
import type { Rig } from "../rig.ts";
import { ms, type Row } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import { type BenchServer, type ServerPlace, startServer } from "../server.ts";
import { batchBody, PAUSED_ACTION } from "../workload.ts";

const TARGET_MS = 1_000;
const LONGEST_MS = 30_000;
const LOAD_MS = 1_000;

export const start: Scenario = {
  name: "start",
  summary:
    "From starting evreg on the history to its first answer, after a stop and after kill -9 under load.",
  async run(rig) {
    const { place } = await rig.seeded();
    await rig.rests.over();
    const afterStop: number[] = [];
    const afterKill: number[] = [];
    for (let round = 0; round < rig.options.rounds; round += 1) {
      rig.options.say(`start, round ${round + 1}`);
      const first = await startTimed(place);
      afterStop.push(first.tookMs);
      await killUnderLoad(rig, first.server);
      const second = await startTimed(place);
      afterKill.push(second.tookMs);
      await second.server.stop();
    }
    return [row("start, after a stop", afterStop), row("start, after kill -9", afterKill)];
  },
};

/** Without the probe, as a user starts it, to its first answer. */
async function startTimed(place: ServerPlace): Promise<{ server: BenchServer; tookMs: number }> {
  const startedMs = performance.now();
  const server = await startServer(place, { isProbed: false });
  const answer = await fetch(`http://127.0.0.1:${server.port}/health`);
  if (!answer.ok) throw new Error(`The first answer was ${answer.status}.`);
  return { server, tookMs: performance.now() - startedMs };
}

async function killUnderLoad(rig: Rig, { port, token, child }: BenchServer): Promise<void> {
  const loading = rig.load.call("closed", {
    port,
    token,
    request: { method: "POST", path: "/v1/events/batch", body: batchBody(PAUSED_ACTION) },
    connections: 8,
    warmUpMs: 0,
    durationMs: LONGEST_MS,
    expect: 201,
  });
  const cut = loading.then(
    () => new Error("The load outlived its server."),
    () => undefined,
  );
  await pause(LOAD_MS);
  await child.end("SIGKILL");
  const fault = await cut;
  if (fault !== undefined) throw fault;
}

function row(scenario: string, times: readonly number[]): Row {
  const tookMs = median(times);
  return {
    scenario,
    ceiling: "-",
    measured: ms(tookMs),
    figure: ms(tookMs),
    target: `≤ ${TARGET_MS} ms`,
    met: tookMs <= TARGET_MS,
    detail: times,
  };
}
