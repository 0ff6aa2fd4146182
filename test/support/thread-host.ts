import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setFlagsFromString } from "node:v8";
import { setImmediate as turn } from "node:timers/promises";
import { compileFunction, runInNewContext } from "node:vm";
import threads, { type MessagePort } from "node:worker_threads";

// A thread of `thread-pool.ts`. It runs scripts one after the other, each time with variables of their own.

/** One run of a script, as `thread-pool.ts` asks for it. */
export interface ScriptRun {
  readonly path: string;
  /** What the script has as its `parentPort`. */
  readonly port: MessagePort;
  /** Nobody opens the script's file once the script has closed it. */
  readonly isLastOfFile: boolean;
}

/** As much of the engine's driver as is needed to see its statements and their rows. */
interface Engine {
  readonly prototype: { prepare: (this: object, text: string) => Statement };
}
interface Statement {
  readonly stmt: object;
  iterate: (this: Statement, ...bound: unknown[]) => Iterable<unknown> & Iterator<unknown>;
}
type Timing = (callback: () => void, delayMs?: number) => NodeJS.Timeout;
type Script = (require: NodeJS.Require, module: object, exports: object, timing: Timing) => void;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
/** To collect takes as much as all else that an empty store does. */
const RUNS_TO_COLLECT = 16;
let runs = 0;
/** The statements of the script's run, and their rows. The engine lets go of a file only once the last of them was collected. */
let holders: WeakRef<object>[] = [];
const scripts = new Map<string, Script>();

threads.parentPort?.on("message", ({ path, port, isLastOfFile }: ScriptRun) => {
  holders = [];
  const timers = new Set<NodeJS.Timeout>();
  const timing: Timing = (callback, delayMs) => {
    const timer = setTimeout(callback, delayMs);
    timers.add(timer);
    return timer;
  };
  port.on("close", () => {
    for (const timer of timers) clearTimeout(timer);
    runs += 1;
    // A script that works on a database has no file.
    if (!isLastOfFile && holders.length > 0) void letGo().then(beFree);
    else {
      if (runs % RUNS_TO_COLLECT === 0) setImmediate(collect);
      beFree();
    }
  });
  const required = createRequire(path);
  const own = { ...threads, parentPort: port };
  const require = ((name: string) => {
    if (name === "libsql") watchStatements(required(name) as Engine);
    return name === "node:worker_threads" ? own : required(name);
  }) as NodeJS.Require;
  const module = { exports: {} };
  scriptAt(path)(require, module, module.exports, timing);
});

const watched = new Set<Engine>();

function watchStatements(engine: Engine): void {
  if (watched.has(engine)) return;
  watched.add(engine);
  const { prototype } = engine;
  const { prepare } = prototype;
  prototype.prepare = function (this: object, text: string): Statement {
    const statement = prepare.call(this, text);
    const { iterate } = statement;
    statement.iterate = function (...bound) {
      const rows = iterate.apply(this, bound);
      // Both hold the rows. The compiler, which works beside the thread, may hold one of them longer than the rest.
      for (const name of ["next", Symbol.iterator])
        holders.push(new WeakRef(Reflect.get(rows, name) as object));
      return rows;
    };
    // The wrapper may be collected before it.
    holders.push(new WeakRef(statement.stmt));
    return statement;
  };
}

function beFree(): void {
  threads.parentPort?.postMessage("free");
}

/**
 * Has the engine let go of the file, and waits for it. What the loop's last events hold is free only once it has turned, and a
 * collection that began before keeps what it took for alive by then, and what was made since: so one is not always enough.
 */
async function letGo(): Promise<void> {
  do {
    await turn();
    await turn();
    collect();
  } while (holders.some((holder) => holder.deref() !== undefined));
  // Their finalizers run in the turns after the collection.
  await turn();
  await turn();
}

function scriptAt(path: string): Script {
  let script = scripts.get(path);
  if (script === undefined) {
    const parameters = ["require", "module", "exports", "setTimeout"];
    script = compileFunction(readFileSync(path, "utf8"), parameters, { filename: path }) as Script;
    scripts.set(path, script);
  }
  return script;
}
