import type { FlushableLogger } from "../runtime/pino-logger.ts";

let server: { readonly log: FlushableLogger | undefined } | undefined;

/** Called by a command that serves: from now on whatever ends the process unasked is a fault, and belongs in its log. */
export function faultsOfServer(log: FlushableLogger | undefined): void {
  server = { log };
}

export function isServer(): boolean {
  return server !== undefined;
}

/** Answers whether there is a log that has it now, with its stack, for an operator to report. */
export function logFault(error: unknown): boolean {
  if (server?.log === undefined) return false;
  server.log.error({ err: error }, "evreg failed by a fault of its own; please report it with this stack");
  server.log.flush();
  return true;
}
