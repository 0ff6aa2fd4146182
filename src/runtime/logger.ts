/** The log as the rest of the product sees it; pino stands behind it (see `runtime/pino-logger.ts`). */
export interface Logger {
  /** Whether `debug` writes anything: what happens thousands of times a second need not put its line together for nothing. */
  readonly isDebugEnabled: boolean;
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const silentLogger: Logger = { isDebugEnabled: false, debug() {}, info() {}, warn() {}, error() {} };

/** The forms of a token, a subscription's secret and a bearer header inside any text. */
const SECRET_TEXT = /\bevreg_[0-9A-Za-z]{36}\b|\bwhsec_[0-9A-Za-z+/=_-]{16,}|\b(?<=Bearer )[^\s"\\]{8,}/g;

/** What stands where a secret was. */
export const CENSOR = "[redacted]";

/** The text without what looks like a secret in it. */
export function scrub(text: string): string {
  return text.replace(SECRET_TEXT, CENSOR);
}
