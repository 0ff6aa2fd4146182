import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { FILE_TASKS, type FileTask } from "./operations.ts";
import { ReaderThread } from "./reader.ts";
import { type StoreThreadTask, toWireError, type WireOutcome } from "./thread/protocol.ts";
import { WriterThread } from "./writer.ts";

// This is the entry of the store's threads: the one that writes the data file, the one that reads it, and one for a single task
// on a file. A file is closed only when its thread ends, however that comes about (see WriteConnection).

if (parentPort === null) throw new Error("this module runs as a worker thread");
const port: MessagePort = parentPort;
const task = workerData as FileTask | StoreThreadTask;

if ("run" in task) port.postMessage(outcomeOf(task));
else if (task.role === "reader") new ReaderThread(port).start();
else new WriterThread(port).start();

function outcomeOf({ run, args }: FileTask): WireOutcome {
  try {
    return { ok: (FILE_TASKS[run] as (...all: readonly unknown[]) => unknown)(...args) };
  } catch (error) {
    return { error: toWireError(error) };
  }
}
