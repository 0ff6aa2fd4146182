import { join } from "node:path";
import { expect, test } from "vitest";
import { WorkerClient } from "../../src/store/libsql/thread/worker-client.ts";
import { singleWrite } from "../../src/store/libsql/thread/protocol.ts";
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
    const worker = await WorkerClient.start(setup, () => undefined, { committed() {} });
    const write = worker.write(singleWrite("probe", 4 * 1024 * 1024));
    const reads = Array.from({ length: 40 }, () => worker.read("listTokens", []));
    const ended = worker.terminate();
    await expect(worker.read("listTokens", [])).rejects.toThrow("ended");
    expect((await write).value).toEqual([{ packed: [1] }]);
    expect((await Promise.all(reads)).map(({ value }) => value)).toEqual(reads.map(() => []));
    await ended;
  }
});
