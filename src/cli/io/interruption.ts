import { existsSync, rmSync } from "node:fs";
import { EXIT } from "../usage-errors.ts";

/** A second signal within this time counts as the first: terminals and `npm` send one twice. */
const REPEATED_MS = 100;

let controller: AbortController | undefined;
let firstAtMs = 0;

/**
 * The signal for a command that ends in order when interrupted (Ctrl-C, or SIGTERM as supervisors send it). A second one
 * ends the process at once, and so does the first one where no command has called this.
 */
export function interruption(): AbortSignal {
  if (controller === undefined) {
    controller = new AbortController();
    process.on("SIGTERM", onInterrupt);
  }
  return controller.signal;
}

export function listenForSigint(): void {
  process.on("SIGINT", onInterrupt);
}

/** The server calls it, as it listens for its own signals. */
export function releaseSigint(): void {
  process.off("SIGINT", onInterrupt);
}

/**
 * Runs work that crashes when it is ended halfway, such as a check of a file in a thread. A signal ends the process as if it
 * handled no signals, after `cleanUp`.
 */
export async function exitOnSignal<T>(work: () => Promise<T>, cleanUp: () => void = () => {}): Promise<T> {
  const end = (signal: NodeJS.Signals): void => {
    cleanUp();
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  };
  releaseSigint();
  process.on("SIGINT", end).on("SIGTERM", end);
  try {
    return await work();
  } finally {
    process.off("SIGINT", end).off("SIGTERM", end);
    listenForSigint();
  }
}

function onInterrupt(): void {
  if (controller !== undefined && !controller.signal.aborted) {
    firstAtMs = performance.now();
    controller.abort();
  } else if (controller === undefined || performance.now() - firstAtMs >= REPEATED_MS) {
    // The exit waits for a thread that opens a pipe; the next signal ends the process all the same.
    process.off("SIGINT", onInterrupt);
    process.exit(EXIT.interrupted);
  }
}

/** `exitOnSignal` calls it. It repeats while the file is there: a thread that is about to open it would make it again. */
export function removeUntilGone(path: string): void {
  while (existsSync(path)) rmSync(path, { force: true });
}
