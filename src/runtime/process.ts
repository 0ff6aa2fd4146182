import { getCompileCacheDir } from "node:module";
import { getAsset, isSea } from "node:sea";
import { Worker } from "node:worker_threads";

/** The part of `process` that is needed here. */
export interface SignalSource {
  on(signal: StopSignal, listener: (signal: StopSignal) => void): unknown;
  off(signal: StopSignal, listener: (signal: StopSignal) => void): unknown;
}

/**
 * For a server at a terminal, SIGHUP is one: the terminal was closed, and without a handler the process would end at once.
 * For any other server it means to reload the configuration.
 */
export type StopSignal = "SIGINT" | "SIGTERM" | "SIGHUP";

/** 128 + the signal's number, as shells count. */
const SIGNAL_EXIT_CODE: Readonly<Record<StopSignal, number>> = {
  SIGHUP: 129,
  SIGINT: 130,
  SIGTERM: 143,
};

/** Within this time a second signal counts as the same: terminals and `npm` send one twice. */
const REPEAT_MS = 100;

export interface StopSignals {
  /** Resolves at the first signal. */
  readonly first: Promise<StopSignal>;
  /** Stops listening; signals do what they did before. */
  release(): void;
}

/**
 * Listens for signals to stop. The first one resolves `first`, for a stop in order; a second one ends the process
 * at once, which loses nothing that was answered.
 * @param endNow ends the process with an exit code, `process.exit` or a test's
 */
export function listenForStop(
  endNow: (exitCode: number) => void,
  source: SignalSource = process,
  now: () => number = Date.now,
  signals: readonly StopSignal[] = Object.keys(SIGNAL_EXIT_CODE) as StopSignal[],
): StopSignals {
  const { promise, resolve } = Promise.withResolvers<StopSignal>();
  let firstAtMs: number | undefined;
  const listener = (signal: StopSignal): void => {
    if (firstAtMs === undefined) {
      firstAtMs = now();
      resolve(signal);
    } else if (now() - firstAtMs >= REPEAT_MS) {
      endNow(SIGNAL_EXIT_CODE[signal]);
    }
  };
  for (const signal of signals) source.on(signal, listener);
  return {
    first: promise,
    release() {
      for (const signal of signals) source.off(signal, listener);
    },
  };
}

/** The threads of this program: the name of each one's script where it is built, and its module among the sources. */
const THREADS = {
  "store-thread": "store/libsql/worker.ts",
  "validation-thread": "service/validation-worker.ts",
} as const;

export type ThreadScript = keyof typeof THREADS;

/**
 * Starts a thread of this program.
 * @param name for tools that list threads
 * @param task what it finds as `workerData`
 */
export function startThread(name: string, script: ThreadScript, task?: unknown): Worker {
  const text = isSea() ? getAsset(`${script}.cjs`, "utf8") : undefined;
  return new Worker(text ?? scriptUrl(script), {
    name,
    eval: text !== undefined,
    workerData: task,
    // The host's flags (a test runner's loader, an inspector) are nothing to this thread.
    execArgv: [],
    // Left alone, the heap for short-lived objects grows to 128 MiB a thread under load, and to no gain.
    resourceLimits: { maxYoungGenerationSizeMb: 16 },
    env: compileCacheEnv(),
  });
}

/** The build puts all its scripts into one folder, this module's among them. */
function scriptUrl(script: ThreadScript): URL {
  const isSource = import.meta.url.endsWith(".ts");
  return isSource
    ? new URL(THREADS[script], new URL("../", import.meta.url))
    : new URL(`${script}.js`, import.meta.url);
}

/** Nothing of the host's environment, but its cache of compiled code: from source a thread starts in half the time with it. */
function compileCacheEnv(): Record<string, string> {
  const folder = getCompileCacheDir();
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
}

/** The words that start this program: the single executable, or Node with the installed entry. */
export function programCommand(): readonly string[] {
  const [, entry] = process.argv;
  return isSea() || entry === undefined ? [process.execPath] : [process.execPath, entry];
}
