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
  /** Whether the engine may hold the file until later. */
  readonly releasesLater: boolean;
}

type Timing = (callback: () => void, delayMs?: number) => NodeJS.Timeout;
type Script = (require: NodeJS.Require, module: object, exports: object, timing: Timing) => void;
type Prepare = (this: unknown, ...values: unknown[]) => object;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const MAX_TRIES = 5;
/** To collect takes as much as all else that an empty store does. */
const RUNS_TO_COLLECT = 16;
let runs = 0;
const scripts = new Map<string, Script>();

// The engine lets go of a file once the last of its statements was collected.
let statements = 0;
const collected = new FinalizationRegistry(() => (statements -= 1));
const { prototype } = createRequire(import.meta.url)("libsql") as { prototype: { prepare: Prepare } };
const { prepare } = prototype;
prototype.prepare = function (...values) {
  const statement = prepare.apply(this, values);
  statements += 1;
  collected.register(statement, undefined);
  return statement;
};

threads.parentPort?.on("message", ({ path, port, releasesLater }: ScriptRun) => {
  const timers = new Set<NodeJS.Timeout>();
  const timing: Timing = (callback, delayMs) => {
    const timer = setTimeout(callback, delayMs);
    timers.add(timer);
    return timer;
  };
  port.on("close", () => {
    for (const timer of timers) clearTimeout(timer);
    runs += 1;
    if (releasesLater && runs % RUNS_TO_COLLECT !== 0) threads.parentPort?.postMessage("released");
    // The running event still refers to the port, which has the objects of the engine.
    else setImmediate(release);
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

/** A thread that cannot let go of a file ends, which does. */
function release(tries = 1): void {
  collect();
  afterTurns(() => {
    // What a statement is for the engine may be finalized after what it is here.
    if (statements === 0) afterTurns(() => threads.parentPort?.postMessage("released"));
    else if (tries < MAX_TRIES) release(tries + 1);
    else process.exit();
  });
}

/** What was collected is finalized in the next turns. */
function afterTurns(done: () => void): void {
  setImmediate(() => setImmediate(done));
}
