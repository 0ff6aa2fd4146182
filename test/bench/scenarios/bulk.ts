import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { cleanEnv, PROGRAM } from "../../support/program.ts";
import { childOf } from "../child.ts";
import { memoryOf } from "../memory.ts";
import { countEvents } from "../registry.ts";
import type { Rig } from "../rig.ts";
import { rateRows } from "../rounds.ts";
import { mb } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import type { BenchServer } from "../server.ts";
import { PAUSED_ACTION, payloadOf } from "../workload.ts";
import { batchesOn } from "./batch.ts";

const EVENTS = 200_000;
const CONCURRENCY = 4;
const TARGET = 0.5;
const MOST_MB = 150;
const LOOK_EVERY_MS = 50;

export const bulk: Scenario = {
  name: "bulk",
  summary: "A file published by evreg publish --batch, beside requests made beforehand.",
  async run(rig) {
    const server = await rig.emptyServer();
    const batches: number[] = [];
    const rates: number[] = [];
    const peaksMb: number[] = [];
    for (let round = 0; round < rig.options.rounds; round += 1) {
      rig.options.say(`bulk, round ${round + 1}`);
      batches.push((await batchesOn(rig, round, server)).ratePerS);
      const file = await writeEvents(rig, round * EVENTS);
      const publishing = () => publish(server, file);
      const { ratePerS, peakMb } = await rig.observe("bulk", "empty", server, publishing, () => EVENTS);
      rates.push(ratePerS);
      peaksMb.push(peakMb);
    }
    await rig.retire("bulk", "empty", server);
    const peakMb = Math.max(...peaksMb);
    return [
      ...rateRows({
        scenario: "bulk",
        ceiling: { name: "batch", rates: batches },
        servers: new Map([["empty", rates]]),
        target: TARGET,
        unit: "events",
        detail: undefined,
      }),
      {
        scenario: "bulk, memory of the client",
        ceiling: "-",
        measured: mb(peakMb),
        figure: mb(peakMb),
        target: `≤ ${mb(MOST_MB)}`,
        met: peakMb <= MOST_MB,
        detail: { peaksMb },
      },
    ];
  },
};

/** A file of events that no other file has. */
async function writeEvents(rig: Rig, firstNumber: number): Promise<string> {
  const file = join(rig.newFolder(), "events.ndjson");
  const out = createWriteStream(file);
  for (let number = firstNumber; number < firstNumber + EVENTS; number += 1) {
    const line = `{"action":"${PAUSED_ACTION}","payload":${payloadOf(number)}}\n`;
    if (!out.write(line)) await once(out, "drain");
  }
  out.end();
  await once(out, "close");
  return file;
}

async function publish(server: BenchServer, file: string): Promise<{ ratePerS: number; peakMb: number }> {
  const before = await countEvents(server);
  const { port, token, place } = server;
  const words = ["--batch", file, "--checkpoint", `${file}.checkpoint`, "--concurrency", String(CONCURRENCY)];
  const startedMs = performance.now();
  const { process: child } = childOf([PROGRAM, "publish", ...words], {
    env: cleanEnv({
      EVREG_URL: `http://127.0.0.1:${port}`,
      EVREG_TOKEN: token,
      NODE_COMPILE_CACHE: place.compileCache,
    }),
    stdio: "ignore",
  });
  let peakMb = 0;
  const watch = setInterval(() => (peakMb = memoryOf(child.pid!)?.peakMb ?? peakMb), LOOK_EVERY_MS);
  const [code] = (await once(child, "close")) as [number | null];
  const tookMs = performance.now() - startedMs;
  clearInterval(watch);
  const stored = (await countEvents(server)) - before;
  if (code !== 0 || stored !== EVENTS) {
    throw new Error(`The bulk ended with ${code}, and ${stored} of its ${EVENTS} events are stored.`);
  }
  return { ratePerS: (EVENTS * 1_000) / tookMs, peakMb };
}
