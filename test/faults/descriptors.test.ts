import { spawnSync } from "node:child_process";
import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { startProgram } from "../support/program.ts";
import { finish, healed, Load, register, useFault } from "./fault.ts";
import { isLong, lengthOf, report } from "./length.ts";

// The promise under test: a server that runs out of file descriptors refuses work, stays, loses nothing, and is well again
// soon after the load is gone.

const { floods } = lengthOf("faults/descriptors");
const DESCRIPTORS = 256;
const CALLERS = 600;
const HEALED_WITHIN_MS = 5_000;

// Slow enough that attempts hold connections of their own.
const fault = useFault(() => ({ after: pause(100) }));

test.skipIf(!isLong || spawnSync("prlimit", ["--version"]).status !== 0)(
  `${DESCRIPTORS} file descriptors and ${CALLERS} callers, ${floods} times, end no server (long form; skipped where there is no prlimit)`,
  { timeout: 60_000 + floods * 15_000 },
  async () => {
    const { path, ledger, receiver } = fault;
    const limit = ["prlimit", `--nofile=${DESCRIPTORS}`];
    const server = await startProgram(path, ["--dev"], {}, limit);
    const { url } = server;
    await register(url, receiver.url, 20);
    let longestMs = 0;
    for (let round = 0; round < floods; round += 1) {
      const idle = Array.from({ length: CALLERS }, () => open(url));
      const load = new Load(url, ledger, 200);
      await pause(3_000);
      await load.stop();
      for (const socket of idle) socket.destroy();
      longestMs = Math.max(longestMs, await healed(url, ledger, HEALED_WITHIN_MS));
      expect(server.child.exitCode).toBeNull();
    }
    await finish(server);
    expect(longestMs).toBeLessThan(HEALED_WITHIN_MS);
    const balance = ledger.expectWhole(path);
    report("256 file descriptors", { floods, healedWithinMs: Math.round(longestMs), ...balance });
  },
);

/** A connection that asks for nothing; whether the server takes it, cuts it or lets it wait is up to it. */
function open(url: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  return socket;
}
