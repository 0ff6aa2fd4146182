import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { canTrace } from "../store/processes.ts";
import { startProgram, temporaryFolder } from "../support/program.ts";
import { until } from "../support/until.ts";
import { create, finish, Load, publish, register, useFault } from "./fault.ts";
import { Ledger } from "./ledger.ts";
import { isLong, lengthOf, report, someOf } from "./length.ts";

// The promise under test: a disk that fails to read or write, for a moment or for longer, costs nothing that was
// acknowledged. evreg ends and says what happened, unless the engine tries again by itself; the data file stays whole. When the
// disk says that it could not keep what was written, nobody is told that it did, and the server ends, as nobody knows what is on it.

const { cases, "failed fsyncs": failedFsyncs } = lengthOf("faults/disk-errors");
const CASES = someOf(
  ["evreg.db-wal", "evreg.db"].flatMap((file) =>
    ["pread64", "pwrite64"].flatMap((call) => [2, 1, 10].map((times) => ({ file, call, times }))),
  ),
  cases,
);
/** Some 80 of them fill the log, so that it is moved into the file, which is when it is read. */
const FILLER = "x".repeat(200_000);
const MOST_EVENTS = 300;
const EVENTS_AFTER = 20;
const QUIET = ["--dev", "--log-level", "warn"];

const fault = useFault();
let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => void (folder = temporaryFolder()));
afterEach(() => folder.remove());

test.skipIf(!canTrace())(
  `fsync fails with EIO, ${failedFsyncs} times (skipped where strace may not trace)`,
  { timeout: 30_000 + failedFsyncs * 10_000 },
  async () => {
    const { path, ledger, receiver } = fault;
    for (let round = 0; round < failedFsyncs; round += 1) {
      const server = await startProgram(path, ["--dev"]);
      if (round === 0) await register(server.url, receiver.url);
      const load = new Load(server.url, ledger, 200);
      const before = ledger.acknowledged;
      await until("events are acknowledged", () => ledger.acknowledged - before >= 50);
      // From when it traces no call that makes something durable succeeds any more, and none has since it began.
      await once(trace(server.child.pid, "fsync,fdatasync:error=EIO"), "spawn");
      const { code, stderr } = await server.ended;
      await load.stop();
      expect(code, stderr).toBe(1);
      expect(stderr).toContain("while a commit was made durable");
      expect(stderr).toContain("Start evreg again.");
    }
    const last = await startProgram(path, ["--dev"]);
    expect(await publish(last.url, ledger)).toBe(201);
    await finish(last);
    report("fsync failing", { failures: failedFsyncs, ...ledger.expectWhole(path) });
  },
);

test.skipIf(!canTrace()).each(CASES)(
  "$times failed $call of $file (skipped where strace may not trace)",
  { timeout: 60_000 },
  async ({ file, call, times }) => {
    const ledger = new Ledger();
    const server = await startProgram(folder.path, QUIET);
    await create(`${server.url}/v1/actions`, { action: "load.sent", application: "load", schemata: {} });
    for (let n = 0; n < 50; n += 1) expect(await publish(server.url, ledger, FILLER)).toBe(201);
    const disk = failing(server.child.pid, join(folder.path, file), call, times);
    await until("the tracer is there", () => disk.isTracing());
    const isOver = (): boolean => server.child.exitCode !== null;
    let after = 0;
    for (let n = 0; n < MOST_EVENTS && after < EVENTS_AFTER && !isOver(); n += 1) {
      await publish(server.url, ledger, FILLER);
      // Only there is anything read from the file that was not written a moment ago.
      if (file === "evreg.db") await fetch(`${server.url}/v1/events/${n}`).catch(() => undefined);
      if (disk.failures() >= times) after += 1;
    }
    const failed = disk.failures();
    await disk.mend();
    const hasEnded = isOver();
    const { code, stderr } = hasEnded ? await server.ended : await server.end("SIGKILL");
    if (hasEnded) {
      expect(code, stderr).toBe(1);
      expect(stderr).toMatch(/the disk failed|the file system failed/);
    }
    expect(failed).toBeGreaterThan(0);
    const next = await startProgram(folder.path, QUIET);
    expect(await publish(next.url, ledger)).toBe(201);
    await next.end("SIGKILL");
    const delivered = { undelivered: expect.any(Number) as number };
    const { sent, acknowledged, refused } = ledger.expectWhole(folder.path, delivered);
    const said = /"reason":"[^"]*"|Error: .*/.exec(stderr)?.[0] ?? "";
    report(`${call} of ${file}`, { times, failed, ended: hasEnded, sent, acknowledged, refused, said });
  },
);

test.skipIf(!isLong || !canTrace())(
  "every write of evreg.db fails, and none of evreg.db-wal (long form; skipped where strace may not trace)",
  { timeout: 60_000 },
  async () => {
    const ledger = new Ledger();
    const server = await startProgram(folder.path, QUIET);
    await create(`${server.url}/v1/actions`, { action: "load.sent", application: "load", schemata: {} });
    const disk = failing(server.child.pid, join(folder.path, "evreg.db"), "pwrite64", 30_000);
    await until("the tracer is there", () => disk.isTracing());
    while (server.child.exitCode === null) await publish(server.url, ledger, FILLER);
    const { code, stderr } = await server.ended;
    await disk.mend();
    expect(code, stderr).toBe(1);
    expect(stderr).toContain("SQLITE_IOERR_WRITE");
    ledger.expectWhole(folder.path, { undelivered: expect.any(Number) as number });
  },
);

/** From when `isTracing`, so many calls on the file fail with EIO. */
function failing(pid: number | undefined, path: string, call: string, times: number) {
  const out = join(folder.path, "strace");
  const tracer = trace(pid, `${call}:error=EIO:when=1..${times}`, "-o", out, "-P", path);
  const ended = once(tracer, "exit");
  return {
    isTracing: () => /^TracerPid:\s*[1-9]/m.test(readFileSync(`/proc/${pid}/status`, "utf8")),
    failures: () => (existsSync(out) ? readFileSync(out, "utf8").split("(INJECTED)").length - 1 : 0),
    mend: async () => {
      // Asked to leave, it waits for each thread in turn, and for ever where the process is just then ending.
      tracer.kill("SIGKILL");
      await ended;
    },
  };
}

/** @param inject the calls, and what is done to them */
function trace(pid: number | undefined, inject: string, ...words: readonly string[]): ChildProcess {
  const calls = inject.slice(0, inject.indexOf(":"));
  const all = ["-f", "-qq", "-e", `trace=${calls}`, "-e", `inject=${inject}`, ...words, "-p", String(pid)];
  return spawn("strace", all, { stdio: "ignore" });
}
