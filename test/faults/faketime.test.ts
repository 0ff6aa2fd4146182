import { existsSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startProgram, temporaryFolder } from "../support/program.ts";
import { startReceiver, type Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { Ledger } from "./ledger.ts";
import { isLong, report } from "./length.ts";
import { publish, register, settled } from "./load.ts";

// The promise under test: a clock that is set loses nothing, a retry comes no earlier than planned (set forward: by that
// clock; set back: by the time that passes), and new events are not held up. faketime moves the time of day under a running
// server, and leaves the time by which its timers go as it is, as it is when a system's clock is set.

const LIBRARY = ["x86_64", "aarch64"]
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));
const EVENTS = 20;
const HOUR_MS = 3_600_000;

let folder: ReturnType<typeof temporaryFolder>;
let offsetFile: string;
let receiver: Receiver;

beforeEach(async () => {
  folder = temporaryFolder();
  offsetFile = join(folder.path, "offset");
  receiver = await startReceiver();
});

afterEach(async () => {
  await receiver.close();
  folder.remove();
});

/** As faketime reads it: seconds from the real time. In one step, as the server reads it all the time. */
function setClock(offsetMs: number): void {
  writeFileSync(`${offsetFile}.new`, `${offsetMs < 0 ? "-" : "+"}${Math.abs(offsetMs) / 1_000}s\n`);
  renameSync(`${offsetFile}.new`, offsetFile);
}

test.skipIf(LIBRARY === undefined || !isLong).each([
  ["forward", HOUR_MS],
  ["back", -HOUR_MS],
])(
  "a server's clock is set %s an hour while retries wait (long form only; needs faketime)",
  { timeout: 120_000 },
  async (direction, stepMs) => {
    setClock(0);
    const ledger = new Ledger();
    const plannedMs = new Map<string, number>();
    const early: string[] = [];
    let backMs = 0;
    // The first three attempts of each fail; the third retry is due four seconds later.
    ledger.watch(receiver, (_, { headers }) => {
      const [event = "", attempt] = (headers["x-evreg-delivery"] ?? "").split("_");
      const sentMs = Number(headers["webhook-timestamp"]) * 1_000;
      if (attempt === "4" && sentMs + backMs + 1_000 < (plannedMs.get(event) ?? 0)) early.push(event);
      return { status: Number(attempt) <= 3 ? 500 : 200 };
    });
    const server = await startProgram(folder.path, ["--dev"], {
      LD_PRELOAD: LIBRARY!,
      FAKETIME_TIMESTAMP_FILE: offsetFile,
      FAKETIME_CACHE_DURATION: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    });
    try {
      await register(server.url, receiver.url);
      for (let count = 0; count < EVENTS; count += 1) await publish(server.url, ledger);
      await until("three attempts of each", () => receiver.requests.length === 3 * EVENTS);
      await until("all to wait", async () => {
        const waiting = await loadWaiting(server.url);
        for (const one of waiting) plannedMs.set(String(one.event_id), Date.parse(one.next_attempt_at));
        return waiting.length === EVENTS && waiting.every(({ attempt }) => attempt === 3);
      });
      setClock(stepMs);
      // By a clock that was set forward they are due at once; set back, they wait as long as they would have.
      backMs = Math.max(0, -stepMs);
      await publish(server.url, ledger);
      await settled(server.url);
      expect((await server.end("SIGTERM")).code).toBe(0);
      expect(early).toEqual([]);
      const balance = ledger.expectWhole(folder.path);
      report(`faketime, clock moved an hour ${direction}`, { ...balance, early: early.length });
    } finally {
      server.child.kill("SIGKILL");
    }
  },
);

async function loadWaiting(
  url: string,
): Promise<readonly { event_id: number; attempt: number; next_attempt_at: string }[]> {
  const response = await fetch(`${url}/v1/deliveries?status=waiting&limit=500`);
  const { data } = (await response.json()) as { data: Awaited<ReturnType<typeof loadWaiting>> };
  return data;
}
