import { EXIT } from "./exit-code.ts";

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

export function listenForInterruption(): void {
  process.on("SIGINT", onInterrupt);
}

/** For the server, which listens for its own signals. */
export function leaveInterruption(): void {
  process.off("SIGINT", onInterrupt);
}

function onInterrupt(): void {
  if (controller !== undefined && !controller.signal.aborted) {
    firstAtMs = performance.now();
    controller.abort();
  } else if (controller === undefined || performance.now() - firstAtMs >= SAME_WISH_MS) {
    process.exit(EXIT.interrupted);
  }
}
