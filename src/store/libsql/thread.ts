import { getCompileCacheDir } from "node:module";
import { Worker } from "node:worker_threads";
import { STORE_WORKER, textInside } from "../../runtime/executable.ts";
import type { FileCheck } from "./examine-file.ts";
import type { WorkerSetup } from "./messages.ts";
import type { NumberMove } from "./number-gap.ts";
import type { FileSettling } from "./settle-file.ts";

export type ThreadTask = WorkerSetup | FileCheck | FileSettling | NumberMove;

/** A thread that has the engine: the one that owns a data file, or one that does a single thing with a file. */
export function storeThread(task: ThreadTask): Worker {
  const inside = textInside(STORE_WORKER);
  return new Worker(inside ?? workerEntry(), {
    name: "evreg-store",
    eval: inside !== undefined,
    workerData: task,
    // The host's flags (a test runner's loader, an inspector) are nothing to this thread.
    execArgv: [],
    // Left alone, the heap for short-lived objects grows to 128 MiB a thread under load, and to no gain.
    resourceLimits: { maxYoungGenerationSizeMb: 16 },
    env: compileCacheEnv(),
  });
}

/** Nothing of the host's environment, but its cache of compiled code: from source a thread starts in half the time with it. */
function compileCacheEnv(): Record<string, string> {
  const folder = getCompileCacheDir();
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
}

/** The worker beside this module: as source under Node's type stripping, as JavaScript once built. */
function workerEntry(): URL {
  return new URL(import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js", import.meta.url);
}
