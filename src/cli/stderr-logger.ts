import { printableLine } from "./printable.ts";
import type { Logger } from "../runtime/logger.ts";

/** For a command that holds the data folder itself: only what went wrong is worth a line among its output. */
export const stderrLogger: Logger = {
  tellsDebug: false,
  debug() {},
  info() {},
  warn: (_fields, message) => void process.stderr.write(`Warning: ${printableLine(message)}\n`),
  error: (_fields, message) => void process.stderr.write(`Error: ${printableLine(message)}\n`),
};
