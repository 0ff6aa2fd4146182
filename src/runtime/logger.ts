/** The log as the rest of the product sees it; pino stands behind it (see `runtime/pino-logger.ts`). */
export interface Logger {
  /** Whether `debug` writes anything: what happens thousands of times a second need not put its line together for nothing. */
  readonly tellsDebug: boolean;
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const silentLogger: Logger = { tellsDebug: false, debug() {}, info() {}, warn() {}, error() {} };
