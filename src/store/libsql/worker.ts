import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { FILE_TASKS, type FileTask } from "./operations.ts";
import { Reader } from "./reader.ts";
import { type ThreadTask, toWireError, type WireOutcome } from "./thread/protocol.ts";
import { Writer } from "./writer.ts";

// The thread that writes the data file, the one that reads it, or one for a single task on a file that nobody has open. Its
// end, however it comes, closes the file; nothing less does (see Connection).

if (parentPort === null) throw new Error("this module runs as a worker thread");
const port: MessagePort = parentPort;
const task = workerData as FileTask | ThreadTask;

if ("run" in task) port.postMessage(outcomeOf(task));
else if (task.role === "reader") new Reader(port).start();
else new Writer(port).start();

function outcomeOf({ run, args }: FileTask): WireOutcome {
  try {
    return { ok: (FILE_TASKS[run] as (...all: readonly unknown[]) => unknown)(...args) };
  } catch (error) {
    return { error: toWireError(error) };
  }
}
