import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setFlagsFromString } from "node:v8";
import { compileFunction, runInNewContext } from "node:vm";
import threads, { type MessagePort } from "node:worker_threads";

// A thread of `thread-pool.ts`. It runs scripts one after the other, each time with variables of their own.

/** One run of a script, as `thread-pool.ts` asks for it. */
export interface ScriptRun {
  readonly path: string;
  /** What the script has as its `parentPort`. */
  readonly port: MessagePort;
}

type Timing = (callback: () => void, delayMs?: number) => NodeJS.Timeout;
type Script = (require: NodeJS.Require, module: object, exports: object, timing: Timing) => void;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
/** To collect takes as much as all else that an empty store does. */
const RUNS_TO_COLLECT = 16;
let runs = 0;
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
    runs += 1;
    // The engine lets go of a file only once the last of its statements was collected.
    if (runs % RUNS_TO_COLLECT === 0) setImmediate(collect);
    threads.parentPort?.postMessage("free");
  });
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
