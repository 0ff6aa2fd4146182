import { existsSync, rmSync } from "node:fs";
import { constants } from "node:os";

/** A second signal within this time counts as the first: terminals and `npm` send one twice. */
const REPEATED_MS = 100;

let controller: AbortController | undefined;
let firstAtMs = 0;

/**
 * The signal for a command that ends in order when interrupted (Ctrl-C, or SIGTERM as supervisors send it). A second one
 * ends the process at once, and so does the first one where no command has called this.
 * @param names of the signals that it heeds beside SIGINT; the reason of its end is an `AbortError` with the name as its message
 */
export function interruption(names: readonly NodeJS.Signals[] = ["SIGTERM"]): AbortSignal {
  if (controller === undefined) {
    controller = new AbortController();
    for (const name of names) process.on(name, onInterrupt);
  }
  return controller.signal;
}

export function listenForSigint(): void {
  process.on("SIGINT", onInterrupt);
}

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

function onInterrupt(name: NodeJS.Signals): void {
  if (controller !== undefined && !controller.signal.aborted) {
    firstAtMs = performance.now();
    controller.abort(new DOMException(name, "AbortError"));
  } else if (controller === undefined || performance.now() - firstAtMs >= REPEATED_MS) {
    // The exit waits for a thread that opens a pipe; the next signal ends the process all the same.
    process.off(name, onInterrupt);
    // As shells count.
    process.exit(128 + constants.signals[name]);
  }
}

/** `exitOnSignal` calls it. It repeats while the file is there: a thread that is about to open it would make it again. */
export function removeUntilGone(path: string): void {
  while (existsSync(path)) rmSync(path, { force: true });
}
