import type { Worker } from "node:worker_threads";
import { STORE_THREAD } from "../../runtime/executable.ts";
import { startThread } from "../../runtime/thread.ts";
import type { FileCheck } from "./examine-file.ts";
import type { WorkerSetup } from "./messages.ts";
import type { FileSettling } from "./settle-file.ts";

export type ThreadTask = WorkerSetup | FileCheck | FileSettling;

/** A thread that has the engine: the one that owns a data file, or one that does a single thing with a file. */
export function storeThread(task: ThreadTask): Worker {
  const module = new URL(import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js", import.meta.url);
  return startThread({ name: "evreg-store", inside: STORE_THREAD, module, task });
}
