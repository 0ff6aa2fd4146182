import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openLocal } from "../../src/app/server.ts";
import type { Evreg } from "../../src/evreg.ts";
import { silentLogger } from "../../src/runtime/logger.ts";

import { writeOlderFile } from "../support/older-file.ts";
import { startChild } from "../store/processes.ts";
import { configFor } from "../support/server.ts";
import { closing, dataFolder, refused, start } from "./setup.ts";

async function open(data: string, command = "actions list"): Promise<Evreg> {
  const options = { config: configFor(data), version: "1.2.3", logger: silentLogger };
  return closing(await openLocal({ ...options, command }));
}

/** Has another command hold the folder: that of another process, as the lock of a file tells processes apart. */
async function held(data: string, command: string): Promise<() => Promise<void>> {
  const child = startChild("store-child.ts", [data, command]);
  expect(await child.line()).toBe("open");
  return async () => {
    child.process.stdin?.end();
    await child.ended();
  };
}

describe("a data folder opened without a server", () => {
  test("is refused at once while a server holds it, and the error names the server", async () => {
    const data = dataFolder();
    const server = await start(data);
    const startedMs = performance.now();
    await Promise.all([
      refused(open(data), "conflict", server.url),
      refused(start(data), "conflict", server.url),
    ]);
    expect(performance.now() - startedMs).toBeLessThan(700);
  });

  test("is waited for while another command holds it", async () => {
    const data = dataFolder();
    const release = await held(data, "actions list");
    const waiting = open(data, "publish");
    await release();
    expect((await (await waiting).tokens.list()).data).toEqual([]);
  });

  test("is refused to a command when another does not finish in time, and named; a server waits longer", async () => {
    const data = dataFolder();
    const release = await held(data, "publish --batch");
    const server = start(data);
    await refused(open(data), "conflict", "evreg publish --batch");
    await release();
    expect((await (await server).evreg.health()).data.status).toBe("ok");
  });

  test("is not migrated: only a server's start does that", async () => {
    const data = dataFolder();
    mkdirSync(data, { recursive: true });
    const file = join(data, "evreg.db");
    writeOlderFile(file, 10);
    const before = readFileSync(file);
    for (const command of ["events list", "publish"]) {
      await refused(open(data, command), "usage", "`evreg migrate`");
    }
    expect(readFileSync(file).equals(before)).toBe(true);
    const server = await start(data);
    await server.stop();
    expect((await (await open(data)).actions.list()).data).not.toEqual([]);
  });
});
