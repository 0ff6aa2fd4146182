import { setTimeout as pause } from "node:timers/promises";
import { median } from "../latencies.ts";
import type { Rig, Scenario } from "../rig.ts";
import { atMost, ms, type Row } from "../row.ts";
import { type BenchServer, type ServerPlace, startServer } from "../server.ts";
import { batchOf, PAUSED_ACTION } from "../workload.ts";

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
    const rounds = await rig.inRounds("start", async () => {
      const afterStop = await startTimed(place);
      await killUnderLoad(rig, afterStop.server);
      const afterKill = await startTimed(place);
      await afterKill.server.stop();
      return [afterStop.tookMs, afterKill.tookMs] as const;
    });
    return [
      row(
        "start, after a stop",
        rounds.map(([stopped]) => stopped),
      ),
      row(
        "start, after kill -9",
        rounds.map(([, killed]) => killed),
      ),
    ];
  },
};

/** Without the probe, as a user starts it, to its first answer. */
async function startTimed(place: ServerPlace): Promise<{ server: BenchServer; tookMs: number }> {
  const startedMs = performance.now();
  const server = await startServer(place, { isProbed: false });
  await server.send("GET", "/health");
  return { server, tookMs: performance.now() - startedMs };
}

async function killUnderLoad(rig: Rig, { port, token, child }: BenchServer): Promise<void> {
  const loading = rig.load.call("closed", {
    port,
    token,
    request: batchOf(PAUSED_ACTION),
    connections: 8,
    warmUpMs: 0,
    durationMs: LONGEST_MS,
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
  return { scenario, ...atMost(median(times), TARGET_MS, ms), detail: times };
}
