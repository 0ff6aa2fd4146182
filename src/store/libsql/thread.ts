import type { Worker } from "node:worker_threads";
import { STORE_THREAD } from "../../runtime/executable.ts";
import { startThread } from "../../runtime/thread.ts";
import type { WorkerSetup, FileCheck, FileSettling, NumberMove } from "./messages.ts";
export type ThreadTask = WorkerSetup | FileCheck | FileSettling | NumberMove;

/** A thread that has the engine: the one that owns a data file, or one that does a single thing with a file. */
export function storeThread(task: ThreadTask): Worker {
  return startThread({ name: "evreg-store", inside: STORE_THREAD, module: workerModule, task });
}

/** As source under Node's type stripping, as JavaScript once built. */
function workerModule(): URL {
  return new URL(import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js", import.meta.url);
}
