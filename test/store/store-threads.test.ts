import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { StoreThreads } from "../../src/store/libsql/thread/store-threads.ts";
import { singleWrite } from "../../src/store/libsql/thread/protocol.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();

// The driver aborts the process when a thread is ended inside a call; without the wait this file never reports back.
test("threads that are ended while they work answer first, let go of the file, and take nothing else", async () => {
  const path = join(scratch.path, "evreg.db");
  writeFileSync(path, "");
  for (let round = 0; round < 4; round += 1) {
    const setup = { path, encryption: undefined, nowMs: 1_000 };
    const threads = await StoreThreads.start(setup, { crashed() {}, damaged() {} });
    const write = threads.writer.request("write", singleWrite("file.probe", 4 * 1024 * 1024));
    const read = () => threads.reader.request("read", { operation: "tokens.list", args: [] });
    const reads = Array.from({ length: 40 }, read);
    const ended = threads.terminate();
    await expect(read()).rejects.toThrow("ended");
    expect((await write).outcomes).toBe(JSON.stringify([{ ok: 1 }]));
    expect(await Promise.all(reads)).toEqual(reads.map(() => []));
    await ended;
  }
});
