import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect } from "vitest";
import { memoryOf } from "../bench/memory.ts";
import { payloadOf, SCHEMA } from "../bench/workload.ts";
import { connect } from "../../src/client/client.ts";
import type { Evreg } from "../../src/evreg.ts";
import { fileSql } from "../support/file-sql.ts";
import { cleanEnv, PROGRAM, type RunningProgram, startProgram, temporaryFolder } from "../support/program.ts";
import { inLongForm, lengthOf, report } from "./length.ts";

// The promise under test: a file that is published with a key is stored whole and once, however often the process that
// publishes it dies; and whatever the length of the file, that process stays small.

const { lines: EVENTS, kills: KILLS } = lengthOf("faults/bulk");
/** One line in so many is refused. */
const BAD_EVERY = 1_000;
const MOST_MB = 150;
/** Seldom enough in a long run not to slow it down. */
const LOOK_EVERY_MS = 200;

const folder = temporaryFolder();
const data = join(folder.path, "data");
const file = join(folder.path, "events.ndjson");
const COMMAND = ["publish", "--batch", file, "--idempotency-key", "load", "--json"];
let server: RunningProgram;
let evreg: Evreg;

beforeAll(async () => {
  mkdirSync(data, { mode: 0o700 });
  [server] = await Promise.all([startProgram(data, ["--dev"]), writeLines()]);
  evreg = connect({ url: server.url });
  await evreg.actions.create({ action: "order.created", application: "shop", schemata: SCHEMA });
}, 60_000);

afterAll(async () => {
  await evreg?.close();
  await server?.end("SIGKILL");
  folder.remove();
});

async function writeLines(): Promise<void> {
  const out = createWriteStream(file);
  for (let number = 0; number < EVENTS; number += 1) {
    const bad = number % BAD_EVERY === 0 ? '{"action":"order.created","payload":{}}\n' : "";
    const line = `${bad}{"action":"order.created","payload":${payloadOf(number)}}\n`;
    if (!out.write(line)) await once(out, "drain");
  }
  out.end();
  await once(out, "close");
}

async function stored(): Promise<number> {
  return (await evreg.events.list({ limit: 1 })).meta.total;
}

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly tookMs: number;
  readonly peakMb: number;
}

/** @param killAt how many events are stored when it dies */
async function publish(killAt = Number.POSITIVE_INFINITY): Promise<Run> {
  const beganMs = performance.now();
  const child = spawn(process.execPath, [PROGRAM, ...COMMAND], {
    env: cleanEnv({ EVREG_DATA: data }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = once(child, "close");
  let peakMb = 0;
  const look = (): boolean => {
    peakMb = Math.max(peakMb, memoryOf(child.pid!)?.peakMb ?? 0);
    return child.exitCode !== null;
  };
  const watch = setInterval(look, 50);
  if (killAt < Number.POSITIVE_INFINITY) {
    while (!look() && (await stored()) < killAt) await pause(LOOK_EVERY_MS);
    child.kill("SIGKILL");
  }
  const [code] = (await ended) as [number | null];
  clearInterval(watch);
  return { code, stdout, stderr, tookMs: performance.now() - beganMs, peakMb };
}

inLongForm(
  `a bulk of ${EVENTS} events, killed ${KILLS} times, is stored whole and once`,
  { timeout: 60_000 + EVENTS },
  async () => {
    const runs: Run[] = [];
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const killed = await publish(Math.floor((EVENTS * kill) / (KILLS + 1)));
      expect(killed.code).toBe(null);
      runs.push(killed);
    }
    const before = await stored();
    expect(before).toBeLessThan(EVENTS);
    const last = await publish();
    runs.push(last);
    expect(last.code).toBe(7);

    const { meta } = JSON.parse(last.stdout) as { meta: Record<string, number> };
    const refused = EVENTS / BAD_EVERY;
    expect(meta).toMatchObject({ accepted: EVENTS, rejected: refused });
    const lines = last.stderr.trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { line: number }).line)).toEqual(
      Array.from({ length: refused }, (_, at) => 1 + at * (BAD_EVERY + 1)),
    );

    const peakMb = Math.max(...runs.map((run) => run.peakMb));
    expect(peakMb).toBeLessThan(MOST_MB);
    await server.end("SIGTERM");
    const [counts] = fileSql(
      join(data, "evreg.db"),
      "SELECT count(*) AS events, count(DISTINCT CAST(payload AS TEXT)) AS payloads FROM event",
    );
    expect(counts).toEqual({ events: EVENTS, payloads: EVENTS });
    const tookMs = runs.reduce((sum, run) => sum + run.tookMs, 0);
    report("bulk", {
      events: EVENTS,
      kills: KILLS,
      "sent again": meta["replayed"],
      "events a second": Math.round((EVENTS * 1_000) / tookMs),
      "client's peak MB": Math.round(peakMb),
    });
  },
);
