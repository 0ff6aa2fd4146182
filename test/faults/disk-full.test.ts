import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { post } from "../support/post.ts";
import { startProgram } from "../support/program.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { until } from "../support/until.ts";
import { finish, healed, Load, publish, register, useFault } from "./fault.ts";
import { isLong, lengthOf, report } from "./length.ts";

// The promise under test: with the disk full nothing is answered 2xx that is not kept, callers are told to come back, and
// once there is room the server is well again by itself.

const { fills } = lengthOf("faults/disk-full");
const HEALED_WITHIN_MS = 5_000;
const FILLER = "x".repeat(20_000);

const disk = isLong ? mountSmallDisk(16) : undefined;
const path = disk?.path ?? "";
const fault = useFault((count) => (count === 1 && Math.random() < 0.1 ? { status: 503 } : {}));
afterAll(() => disk?.remove());

test.skipIf(disk === undefined)(
  `a disk that is full and freed, ${fills} times, loses nothing acknowledged (long form; skipped where no tmpfs can be mounted)`,
  { timeout: 60_000 + fills * 20_000 },
  async () => {
    const { ledger, receiver } = fault;
    const folder = join(path, "data");
    const file = join(path, "filler");
    mkdirSync(folder);
    const server = await startProgram(folder, ["--dev"]);
    const { url } = server;
    await register(url, receiver.url);
    let longestMs = 0;
    for (let round = 0; round < fills; round += 1) {
      const load = new Load(url, ledger, 100);
      const before = ledger.acknowledged;
      await until("events are acknowledged", () => ledger.acknowledged - before >= 20);
      fill(file);
      await until("the disk to be full", async () => (await publish(url, ledger, FILLER)) === 503, 20_000);
      expect((await fetch(`${url}/health`)).status).toBe(503);
      const refusal = await post(`${url}/v1/events`, { action: "load.sent", payload: { n: 0 } });
      expect([refusal.status, refusal.headers.has("retry-after")]).toEqual([503, true]);
      // Reads go on.
      expect((await fetch(`${url}/v1/events?limit=1`)).status).toBe(200);
      await pause(3_000);

      rmSync(file);
      longestMs = Math.max(longestMs, await healed(url, ledger, HEALED_WITHIN_MS));
      await load.stop();
    }
    await finish(server);
    expect(longestMs).toBeLessThan(HEALED_WITHIN_MS);
    expect(ledger.refusedWith(503)).toBeGreaterThan(0);
    const balance = ledger.expectWhole(folder, { unanswered: 0, refusedButStored: 0 });
    report("disk full", { fills, healedWithinMs: Math.round(longestMs), ...balance });
  },
);

/** Takes all the room there is. */
function fill(file: string): void {
  for (const bytes of [1_048_576, 65_536, 4_096]) {
    for (;;) {
      try {
        writeFileSync(file, Buffer.alloc(bytes), { flag: "a" });
      } catch {
        break;
      }
    }
  }
}
