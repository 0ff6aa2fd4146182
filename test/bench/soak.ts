import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { memoryOf } from "./memory.ts";
import { Rig } from "./rig.ts";
import { DELIVERED_ACTION, eventBody } from "./workload.ts";

// What a server holds that goes on for long, beside a handler that never answers. See README.md.

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "60" },
    rate: { type: "string", default: "100" },
    hanging: { type: "string", default: "1" },
    "every-s": { type: "string", default: "30" },
  },
});
const everyMs = Number(values["every-s"]) * 1_000;

interface Sample {
  readonly minute: number;
  readonly residentMb: number;
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
const beganMs = performance.now();
const load = rig.load.call("paced", {
  port: server.port,
  token: server.token,
  requests: [{ method: "POST", path: "/v1/events", body: eventBody(DELIVERED_ACTION) }],
  connections: 4,
  ratePerS: Number(values.rate),
  warmUpMs: 0,
  durationMs: Number(values.minutes) * 60_000,
  expect: 201,
});
for (let isOver = false; !isOver;) {
  isOver = await Promise.race([pause(everyMs, false), load.then(() => true)]);
  const residentMb = memoryOf(server.child.pid)?.nowMb ?? Number.NaN;
  const minute = (performance.now() - beganMs) / 60_000;
  samples.push({ minute, residentMb });
  process.stdout.write(`${minute.toFixed(1)} min  ${residentMb.toFixed(1)} MB\n`);
}
const half = samples.slice(Math.floor(samples.length / 2));
process.stdout.write(
  `In the second half ${slope(half).toFixed(3)} MB a minute, from ${half[0]?.residentMb.toFixed(1)} to ${half.at(-1)?.residentMb.toFixed(1)} MB.\n`,
);
process.exit();

/** MB a minute, by least squares. */
function slope(of: readonly Sample[]): number {
  const minute = mean(of.map((one) => one.minute));
  const resident = mean(of.map(({ residentMb }) => residentMb));
  const both = mean(of.map((one) => (one.minute - minute) * (one.residentMb - resident)));
  return both / mean(of.map((one) => (one.minute - minute) ** 2));
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
}
