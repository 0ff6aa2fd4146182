import { existsSync, rmSync } from "node:fs";
import { EXIT } from "../usage-errors.ts";

/** Within this time a second signal is taken for the same wish: terminals and `npm` send one twice. */
const SAME_WISH_MS = 100;

let controller: AbortController | undefined;
let firstAtMs = 0;

/**
 * For a command that ends in order when interrupted (Ctrl-C): the signal that tells it. A second Ctrl-C ends the
 * process at once, as the first one does for every command that did not ask.
 */
export function interruption(): AbortSignal {
  controller ??= new AbortController();
  return controller.signal;
}

export function listenForSigint(): void {
  process.on("SIGINT", onInterrupt);
}

/** For the server, which listens for its own signals. */
export function releaseSigint(): void {
  process.off("SIGINT", onInterrupt);
}

/**
 * Does what cannot be interrupted in order, such as a check of a file in a thread: to end that in the middle would crash
 * the process on its way out. A signal then ends it as the system ends a program that knows nothing of signals.
 * @param cleanUp done before, at once
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
  } else if (controller === undefined || performance.now() - firstAtMs >= SAME_WISH_MS) {
    process.exit(EXIT.interrupted);
  }
}

/** For `endingAtOnce`: as long as it is there, as the thread that is about to open a file would make it anew. */
export function removeUntilGone(path: string): void {
  while (existsSync(path)) rmSync(path, { force: true });
}
