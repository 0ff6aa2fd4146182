import { getCompileCacheDir } from "node:module";
import { getAsset, isSea } from "node:sea";
import { Worker } from "node:worker_threads";

/** The threads of this program: the name of each one's script where it is built, and its module among the sources. */
const THREADS = {
  "store-thread": "store/libsql/worker.ts",
  "postgres-thread": "store/postgres/worker.ts",
  "move-thread": "store/move/worker.ts",
  "validation-thread": "service/validation-worker.ts",
} as const;

export type ThreadScript = keyof typeof THREADS;

/**
 * Starts a thread of this program.
 * @param name for tools that list threads
 */
export function startThread(name: string, script: ThreadScript): Worker {
  const compileCache = getCompileCacheDir();
  const text = isSea() ? getAsset(`${script}.cjs`, "utf8") : undefined;
  return new Worker(text ?? scriptUrl(script), {
    name,
    eval: text !== undefined,
    // The thread gets none of the host's flags, such as a test runner's loader or an inspector.
    execArgv: [],
    // By default, the heap for short-lived objects grows to 128 MiB a thread under load, without any gain.
    resourceLimits: { maxYoungGenerationSizeMb: 16 },
    // From source, a thread starts in half the time with the cache of compiled code.
    env: compileCache === undefined ? {} : { NODE_COMPILE_CACHE: compileCache },
  });
}

/** The build puts all its scripts into one folder, this module's among them. */
function scriptUrl(script: ThreadScript): URL {
  const isSource = import.meta.url.endsWith(".ts");
  return isSource
    ? new URL(THREADS[script], new URL("../", import.meta.url))
    : new URL(`${script}.js`, import.meta.url);
}

/** All words of the command line behind the program that runs them: the entry, where there is one, and what was typed. */
export function programWords(): readonly string[] {
  return process.argv.slice(isSea() ? 2 : 1);
}
