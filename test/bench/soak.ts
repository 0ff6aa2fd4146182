import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { ThreadMemory } from "./probe.ts";
import { Rig } from "./rig.ts";
import { DELIVERED_ACTION, eventBody } from "./workload.ts";

// What a server holds that goes on for long, beside a handler that never answers. See README.md.

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "60" },
    rate: { type: "string", default: "100" },
    hanging: { type: "string", default: "1" },
    "every-s": { type: "string", default: "30" },
    json: { type: "string", default: "soak-results.json" },
  },
});
const durationMs = Number(values.minutes) * 60_000;
const everyMs = Number(values["every-s"]) * 1_000;
const CONNECTIONS = 4;

interface Sample {
  readonly minute: number;
  /** Of the whole process, by what /proc tells. */
  readonly rssMb: number;
  readonly anonymousMb: number;
  /** What malloc has from the system for its main arena. */
  readonly mallocMainMb: number;
  readonly threads: readonly ThreadMemory[];
}

const rig = new Rig({ rounds: 1, history: false, historyEvents: 0, idle: false, say: () => {} });
process.once("exit", () => rig.close());
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

const server = await rig.emptyServer();
for (let number = 0; number < Number(values.hanging); number += 1) {
  await server.api("POST", "/v1/subscriptions", {
    application: "billing",
    subscription: `hanging-${number}`,
    action: DELIVERED_ACTION,
    handler: await rig.handler("hang", String(number)),
  });
}

const samples: Sample[] = [];
const { pid } = server.child;
process.stdout.write(`server ${pid}\n`);
const beganMs = performance.now();
const load = rig.load.call("paced", {
  port: server.port,
  token: server.token,
  requests: [{ method: "POST", path: "/v1/events", body: eventBody(DELIVERED_ACTION) }],
  connections: CONNECTIONS,
  ratePerS: Number(values.rate),
  warmUpMs: 0,
  durationMs,
  expect: 201,
});
for (let isOver = false; !isOver;) {
  isOver = await Promise.race([pause(everyMs, false), load.then(() => true)]);
  const sample = await take();
  samples.push(sample);
  process.stdout.write(`${lineOf(sample)}\n`);
  writeFileSync(values.json, `${JSON.stringify(samples, undefined, 1)}\n`);
}
await load;
const half = samples.slice(Math.floor(samples.length / 2));
process.stdout.write(
  `In the second half ${slope(half).toFixed(3)} MB a minute, from ${half[0]?.rssMb.toFixed(1)} to ${half.at(-1)?.rssMb.toFixed(1)} MB.\n`,
);
process.exit();

async function take(): Promise<Sample> {
  const threads = await server.child.call("memory");
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  const maps = readFileSync(`/proc/${pid}/smaps`, "latin1");
  return {
    minute: (performance.now() - beganMs) / 60_000,
    rssMb: kbOf(status, "VmRSS") / 1_024,
    anonymousMb: kbOf(status, "RssAnon") / 1_024,
    mallocMainMb: kbOf(maps.slice(Math.max(0, maps.indexOf("[heap]"))), "Rss") / 1_024,
    threads,
  };
}

function kbOf(text: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text)?.[1]);
}

function lineOf({ minute, rssMb, anonymousMb, mallocMainMb, threads }: Sample): string {
  const parts = threads.map(
    ({ thread, heapUsedMb, heapTotalMb, externalMb, mallocedMb }) =>
      `${thread}: ${heapUsedMb.toFixed(1)}/${heapTotalMb.toFixed(1)} +${externalMb.toFixed(1)} +${mallocedMb.toFixed(1)}`,
  );
  return `${minute.toFixed(1)} min  rss ${rssMb.toFixed(1)}  anonymous ${anonymousMb.toFixed(1)}  malloc ${mallocMainMb.toFixed(1)}  ${parts.join("  ")}`;
}

/** MB a minute, by least squares. */
function slope(of: readonly Sample[]): number {
  const minute = mean(of.map((one) => one.minute));
  const rss = mean(of.map(({ rssMb }) => rssMb));
  const both = mean(of.map((one) => (one.minute - minute) * (one.rssMb - rss)));
  return both / mean(of.map((one) => (one.minute - minute) ** 2));
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
}
