import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { CommitCounts } from "../../src/store/health.ts";
import { WorkerHost } from "../../src/store/libsql/thread/worker-client.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();

// The driver aborts the process when its thread is ended inside a call; without the wait this file never reports back.
test("a thread that is ended while it works answers first, lets go of the file, and takes nothing else", async () => {
  for (let round = 0; round < 10; round += 1) {
    const setup = {
      path: join(scratch.path, "evreg.db"),
      release: true,
      encryption: undefined,
      nowMs: 1_000,
    };
    const worker = await WorkerHost.start(setup, () => undefined, new CommitCounts(silentLogger));
    const write = worker.request({
      kind: "flight",
      ops: [{ name: "probe", args: [4 * 1024 * 1024] }],
      rows: 1,
    });
    const reads = Array.from({ length: 40 }, () =>
      worker.request({ kind: "read", name: "listTokens", args: [] }),
    );
    const ended = worker.terminate();
    await expect(worker.request({ kind: "read", name: "listTokens", args: [] })).rejects.toThrow("ended");
    const answers = await Promise.all([write, ...reads]);
    expect(answers.flatMap(({ outcomes }) => outcomes).every((outcome) => "ok" in outcome)).toBe(true);
    await ended;
  }
});
