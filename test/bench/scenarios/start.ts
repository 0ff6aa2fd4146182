import { closeSync, openSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { type Child, childOf } from "../child.ts";
import type { CallTable } from "../calls.ts";
import { median } from "../latencies.ts";
import type { Rig } from "../rig.ts";
import { ms, type Row } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import { serveArgs, serveEnv, type ServerPlace, tokenOf } from "../server.ts";
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
    const port = await freePort();
    const afterStop: number[] = [];
    const afterKill: number[] = [];
    for (let round = 0; round < rig.options.rounds; round += 1) {
      rig.options.say(`start, round ${round + 1}`);
      const first = await startTimed(place, port);
      afterStop.push(first.tookMs);
      await killUnderLoad(rig, first.child, port, tokenOf(place));
      const second = await startTimed(place, port);
      afterKill.push(second.tookMs);
      await second.child.end("SIGTERM");
    }
    return [row("start, after a stop", afterStop), row("start, after kill -9", afterKill)];
  },
};

/** Without the probe, as a user starts it. */
async function startTimed(
  place: ServerPlace,
  port: number,
): Promise<{ child: Child<CallTable>; tookMs: number }> {
  const log = openSync(place.logFile, "a");
  const startedMs = performance.now();
  const child = childOf(serveArgs(place, port), { stdio: ["ignore", log, log], env: serveEnv(place) });
  closeSync(log);
  while (!(await answers(port))) {
    if (child.process.exitCode !== null) throw new Error(`evreg serve ended with ${child.process.exitCode}.`);
    if (performance.now() - startedMs > LONGEST_MS) throw new Error("evreg serve did not answer in time.");
    await pause(5);
  }
  return { child, tookMs: performance.now() - startedMs };
}

async function answers(port: number): Promise<boolean> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/health`);
    await answer.arrayBuffer();
    return answer.ok;
  } catch {
    return false;
  }
}

async function killUnderLoad(rig: Rig, child: Child<CallTable>, port: number, token: string): Promise<void> {
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

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
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
