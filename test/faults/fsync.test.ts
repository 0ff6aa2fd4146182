import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import { canTrace } from "../store/processes.ts";
import { type RunningProgram, startProgram } from "../support/program.ts";
import { until } from "../support/until.ts";
import { finish, useFault } from "./fault.ts";
import { lengthOf, report } from "./length.ts";
import { Load, publish, register } from "./load.ts";

// The promise under test: when the disk says that it could not keep what was written, nobody is told that it did; and as
// nobody knows what is on it then, the server stops and says so.

const { failures } = lengthOf("faults/fsync");
const fault = useFault();

test.skipIf(!canTrace())(
  `fsync fails with EIO, ${failures} times (skipped where strace may not trace)`,
  { timeout: 30_000 + failures * 10_000 },
  async () => {
    const { path, ledger, receiver } = fault;
    for (let round = 0; round < failures; round += 1) {
      const server = await startProgram(path, ["--dev"]);
      if (round === 0) await register(server.url, receiver.url);
      const load = new Load(server.url, ledger, 200);
      const before = ledger.acknowledged;
      await until("events are acknowledged", () => ledger.acknowledged - before >= 50);
      await failFsync(server);
      const { code, stderr } = await server.ended;
      await load.stop();
      expect(code, stderr).toBe(1);
      expect(stderr).toContain("while a commit was made durable");
      expect(stderr).toContain("Start evreg again.");
    }
    const last = await startProgram(path, ["--dev"]);
    expect(await publish(last.url, ledger)).toBe(201);
    await finish(last);
    const balance = ledger.expectWhole(path);
    report("fsync failing", { failures, ...balance });
  },
);

/** From when this resolves, no call that makes something durable succeeds any more, and none has since it began. */
async function failFsync({ child }: RunningProgram): Promise<void> {
  const inject = "inject=fsync,fdatasync:error=EIO";
  const tracer = spawn(
    "strace",
    ["-f", "-qq", "-e", "trace=fsync,fdatasync", "-e", inject, "-p", String(child.pid)],
    {
      stdio: "ignore",
    },
  );
  await new Promise((resolve) => tracer.once("spawn", resolve));
}
