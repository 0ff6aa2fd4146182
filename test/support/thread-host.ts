import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { setFlagsFromString } from "node:v8";
import { compileFunction, runInNewContext } from "node:vm";
import threads, { type MessagePort } from "node:worker_threads";
import type { ToThread } from "../../src/store/libsql/thread/protocol.ts";

// A thread of `thread-pool.ts`. It runs the store's script again and again, each time with variables of its own.

/** One run of the script, as `thread-pool.ts` asks for it. */
export interface ScriptRun {
  readonly path: string;
  /** What the script has as its `parentPort`. */
  readonly port: MessagePort;
}

type Timing = (callback: () => void, delayMs?: number) => NodeJS.Timeout;
type Script = (require: NodeJS.Require, module: object, exports: object, timing: Timing) => void;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const MAX_TRIES = 5;
const OPEN_FILES = "/proc/self/fd";
const scripts = new Map<string, Script>();

threads.parentPort?.on("message", ({ path, port }: ScriptRun) => {
  const timers = new Set<NodeJS.Timeout>();
  const timing: Timing = (callback, delayMs) => {
    const timer = setTimeout(callback, delayMs);
    timers.add(timer);
    return timer;
  };
  port.on("close", () => {
    for (const timer of timers) clearTimeout(timer);
    // The running event still refers to the port, which has the objects of the engine.
    setImmediate(release, tasks.join("\n"));
  });
  // The tasks name their files.
  const tasks: string[] = [];
  port.on("message", ({ kind, ask }: ToThread) => kind === "task" && tasks.push(...ask.args.map(String)));
  const required = createRequire(path);
  const own = { ...threads, parentPort: port };
  const require = ((name: string) =>
    name === "node:worker_threads" ? own : required(name)) as NodeJS.Require;
  const module = { exports: {} };
  scriptAt(path)(require, module, module.exports, timing);
});

function scriptAt(path: string): Script {
  let script = scripts.get(path);
  if (script === undefined) {
    const parameters = ["require", "module", "exports", "setTimeout"];
    script = compileFunction(readFileSync(path, "utf8"), parameters, { filename: path }) as Script;
    scripts.set(path, script);
  }
  return script;
}

/** The engine lets go of a file once the last of its objects was collected and, in the next turn, finalized. */
function release(task: string, tries = 1): void {
  collect();
  setImmediate(() => {
    if (tries < MAX_TRIES && hasFileOf(task)) release(task, tries + 1);
    else threads.parentPort?.postMessage("released");
  });
}

/** Whether this process has a data file open that the task names, or `false` where the system does not show that. */
function hasFileOf(task: string): boolean {
  if (!existsSync(OPEN_FILES)) return false;
  return readdirSync(OPEN_FILES).some((descriptor) => {
    try {
      const path = readlinkSync(`${OPEN_FILES}/${descriptor}`).replace(/ \(deleted\)$/, "");
      return path.startsWith("/") && task.includes(path);
    } catch {
      // It was closed meanwhile.
      return false;
    }
  });
}
