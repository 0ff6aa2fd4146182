import { createHook } from "node:async_hooks";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { Session, type Profiler } from "node:inspector";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startServer } from "../../src/app/server.ts";
import { defaultConfig } from "../../src/config/load.ts";
import { silentLogger } from "../../src/runtime/logger.ts";

// Prints the source files whose functions run on the main thread while one event is published to a warm server and
// delivered, in the order in which they are first entered, each with the functions it ran. A reader of one event's path
// reads these. V8's own coverage counts, so nothing is left out.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SOURCES = new URL("../../src/", import.meta.url).href;
const WARM_EVENTS = 20;
/** Longer than a commit takes on a slow disk. */
const QUIET_MS = 300;

const folder = mkdtempSync(join(tmpdir(), "evreg-path-"));
let delivered = Promise.withResolvers<void>();
const receiver = createServer((request, response) => {
  request.resume().on("end", () => {
    response.end();
    delivered.resolve();
  });
}).listen(0, "127.0.0.1");
await new Promise((resolve) => receiver.once("listening", resolve));
const handler = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;

const base = defaultConfig(folder);
const server = await startServer({
  config: {
    ...base,
    data: join(folder, "data"),
    port: 0,
    // The first round of removing what is old may still run, and is no part of the path.
    retention: { ...base.retention, audit: 0 },
  },
  dev: true,
  version: "0.0.0-bench",
  logger: silentLogger,
});

async function publish(): Promise<void> {
  delivered = Promise.withResolvers();
  const response = await fetch(`${server.url}/v1/events`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ action: "order.placed", payload: { id: "1" } }),
  });
  await response.arrayBuffer();
  if (response.status !== 201) throw new Error(`The event was answered with ${response.status}.`);
  await delivered.promise;
}

const session = new Session();
const first = new Map<string, Map<string, number>>();

let lastRunMs = 0;

/** Adds what of `src` ran since the last call. */
function collect(): void {
  session.post("Profiler.takePreciseCoverage", (error, coverage: Profiler.TakePreciseCoverageReturnType) => {
    if (error !== null) throw error;
    for (const { url, functions } of coverage.result) {
      if (!url.startsWith(SOURCES)) continue;
      for (const { functionName, ranges } of functions) {
        const calls = ranges[0]?.count ?? 0;
        if (calls === 0) continue;
        lastRunMs = performance.now();
        const file = relative(ROOT, fileURLToPath(url));
        const names = first.get(file) ?? new Map<string, number>();
        first.set(file, names.set(functionName || "(a function without a name)", calls));
      }
    }
  });
}

/** Waits until nothing of `src` has run for a while. */
async function untilQuiet(): Promise<void> {
  do {
    await setTimeout(QUIET_MS / 2);
    collect();
  } while (performance.now() - lastRunMs < QUIET_MS);
}

try {
  await server.evreg.actions.create({
    action: "order.placed",
    application: "shop",
    schemata: { type: "object", properties: { id: { type: "string" } } },
  });
  await server.evreg.subscriptions.create({
    action: "order.placed",
    application: "billing",
    subscription: "billing",
    handler,
  });
  for (let count = 0; count < WARM_EVENTS; count++) await publish();
  session.connect();
  session.post("Profiler.enable");
  session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await untilQuiet();
  first.clear();
  const hook = createHook({ before: collect }).enable();
  await publish();
  // The event's path ends when the store has its delivery as delivered: when nothing of evreg runs any more.
  await untilQuiet();
  hook.disable();
} finally {
  session.disconnect();
  await server.stop();
  receiver.close();
  rmSync(folder, { recursive: true, force: true });
}
const lines = [...first].map(([file, functions]) => `${file}: ${[...functions.keys()].join(", ")}\n`);
process.stdout.write(`${lines.join("")}${first.size} files\n`);
