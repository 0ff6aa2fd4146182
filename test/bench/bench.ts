import { writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { HISTORY_SIZES } from "./history.ts";
import { observationTable, table } from "./report.ts";
import { Rig } from "./rig.ts";
import type { Row } from "./row.ts";
import { SCENARIOS } from "./scenarios.ts";

// `npm run bench`: what evreg does on this machine, each figure beside what bounds it. See README.md.

/** A run ends after this long, with what it has measured by then and as failed. */
const LONGEST_MS = 8 * 60_000;
const LONGEST_MS_A_ROUND = 160_000;
/** To fill and to count a million events. */
const LONGEST_MS_A_MILLION = 60_000;

const options = argumentsOrEnd();
if (options.list) {
  for (const { name, summary } of SCENARIOS) process.stdout.write(`${name.padEnd(12)}${summary}\n`);
  process.stdout.write(
    "history     publish, batch, backlog, sustained and latency on the file with a month's events as well.\n",
  );
  process.exit(0);
}

const chosen = SCENARIOS.filter(({ name, isOnlyByName = false }) =>
  options.only === undefined ? !isOnlyByName : options.only.includes(name),
);

const startedMs = performance.now();
/** What else the machine does falls on both sides of a ratio, but not evenly: who reads the figures should know of it. */
const [loadBefore = 0] = loadavg();
const rig = new Rig({
  rounds: options.rounds,
  history: options.only === undefined || options.only.includes("history"),
  historyEvents: options.historyEvents,
  idle: options.only === undefined || options.only.includes("memory"),
  say: process.stderr.isTTY ? say : () => undefined,
});
process.once("exit", () => rig.close());
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    process.stderr.write("\nInterrupted: nothing was written.\n");
    process.exit(130);
  });
}

function argumentsOrEnd(): ReturnType<typeof readArguments> {
  try {
    return readArguments();
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    process.stderr.write(`${what}\ntest/bench/README.md tells the options, and --list the scenarios.\n`);
    return process.exit(2);
  }
}

function readArguments() {
  const { values } = parseArgs({
    options: {
      only: { type: "string" },
      rounds: { type: "string", default: "3" },
      size: { type: "string", default: "2m" },
      json: { type: "string", default: "bench-results.json" },
      strict: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
    },
  });
  const names = [...SCENARIOS.map(({ name }) => name), "history"];
  const only = values.only?.split(",");
  const unknown = only?.find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new Error(`There is no scenario ${unknown}; there are ${names.join(", ")}.`);
  const rounds = Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error("--rounds takes a whole number from 1.");
  const historyEvents = HISTORY_SIZES[values.size];
  if (historyEvents === undefined)
    throw new Error(`--size takes one of ${Object.keys(HISTORY_SIZES).join(", ")}.`);
  return { only, rounds, historyEvents, jsonFile: values.json, strict: values.strict, list: values.list };
}

function secondsSinceStart(): number {
  return Math.round((performance.now() - startedMs) / 1_000);
}

function say(what: string): void {
  process.stderr.write(`\r\u001b[K${secondsSinceStart()} s  ${what}`);
}

const rows: Row[] = [];
const longestMs =
  Math.max(LONGEST_MS, options.rounds * LONGEST_MS_A_ROUND) +
  (options.historyEvents / 1_000_000 - 2) * LONGEST_MS_A_MILLION;
const outOfTime = pause(longestMs, undefined, { ref: false }).then(() => {
  throw new Error(`The run was cut off after ${longestMs / 1_000} s.`);
});
outOfTime.catch(() => undefined);
for (const scenario of chosen) {
  try {
    rows.push(...(await Promise.race([scenario.run(rig), outOfTime])));
  } catch (error) {
    rig.failures.push(`${scenario.name}: ${error instanceof Error ? error.stack : String(error)}`);
    await rig.clear();
  }
}
rig.close();
if (process.stderr.isTTY) process.stderr.write("\r\u001b[K");

const { observations, rests, failures } = rig;
const machine = `${cpus().length} × ${cpus()[0]?.model ?? "?"}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.versions.node}, load average ${loadBefore.toFixed(1)} before`;
const seconds = secondsSinceStart();
process.stdout.write(
  `${table(rows)}\n\n${observationTable(observations)}\n\n${machine}, ${options.rounds} rounds, ${seconds} s\n`,
);
const results = { machine, rounds: options.rounds, seconds, rows, observations, rests: rests.seen, failures };
writeFileSync(options.jsonFile, `${JSON.stringify(results, undefined, 2)}\n`);
for (const failure of failures) process.stderr.write(`\nFAILED ${failure}\n`);
if (failures.length > 0 || (options.strict && rows.some(({ met }) => met === false))) process.exitCode = 1;
process.exit();
