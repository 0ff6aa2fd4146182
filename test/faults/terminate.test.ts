import { setTimeout as pause } from "node:timers/promises";
import { expect } from "vitest";
import { startProgram } from "../support/program.ts";
import { finish, Load, register, useFault } from "./fault.ts";
import { inLongForm, lengthOf, report } from "./length.ts";

// The promise under test: a stop in order loses nothing, sends nothing twice to a handler that answers in time, and takes
// no longer than the shutdown deadline.

const { stops } = lengthOf("faults/terminate");
const DEADLINE_MS = 5_000;
const ANSWERS_AFTER_MS = 30;

const fault = useFault(() => ({ after: pause(ANSWERS_AFTER_MS) }));

inLongForm(
  `SIGTERM under load, ${stops} times: everything in flight is finished or returned, and nothing is sent twice`,
  { timeout: 60_000 + stops * 5_000 },
  async () => {
    const { path, ledger, receiver } = fault;
    let longestMs = 0;
    for (let round = 0; round <= stops; round += 1) {
      const server = await startProgram(path, ["--dev"], {
        EVREG_SHUTDOWN_GRACE_MS: String(DEADLINE_MS),
      });
      if (round === 0) await register(server.url, receiver.url);
      if (round === stops) {
        await finish(server);
        break;
      }
      const load = new Load(server.url, ledger, 200);
      await pause(150 + Math.random() * 350);
      const beganMs = performance.now();
      const { code } = await server.end("SIGTERM");
      longestMs = Math.max(longestMs, performance.now() - beganMs);
      await load.stop();
      expect(code).toBe(0);
    }
    expect(longestMs).toBeLessThan(DEADLINE_MS);
    const balance = ledger.expectWhole(path, { duplicates: 0, repeated: 0, refusedButStored: 0 });
    expect(balance.acknowledged).toBeGreaterThan(stops * 10);
    report("SIGTERM", { stops, longestMs: Math.round(longestMs), ...balance });
  },
);
