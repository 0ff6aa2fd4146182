import type { DestinationStream, LoggerOptions, pino as Pino } from "pino";

export interface Logger {
  /** Whether `debug` writes anything; without, frequent events need not compose a line. */
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

export interface LogOptions {
  readonly level: "debug" | "info" | "warn" | "error" | "silent";
  /** `auto`: for people on a terminal, JSON elsewhere. */
  readonly format: "auto" | "pretty" | "json";
  /** The id of this process, where several write to one log: each line has it. */
  readonly pid?: number | undefined;
}

/** Where lines go when it is not the process's stderr. */
export interface LogTarget {
  write(text: string): void;
  readonly isTTY?: boolean;
  hasColors?(): boolean;
}

/** A log whose level can be changed. */
export interface LevelledLogger extends Logger {
  setLevel(level: LogOptions["level"]): void;
}

/** Beyond this many buffered bytes new lines are dropped: a log reader that has stopped must not fill the memory. */
const MAX_BUFFERED_BYTES = 8 * 1024 * 1024;

/** Members whose values are never logged, not even by mistake. */
const SECRET_NAMES = ["authorization", "token", "bearer_token", "secret", "password", "cookie"];

/**
 * A `Logger` by pino, to stderr: on a terminal for people, elsewhere as JSON. Node buffers what a slow reader of a pipe has not
 * taken, so that it does not hold up requests. Pino's own destination is not used: its `flushSync` tries for ever when the reader
 * has just gone away or has stopped, and the process would never end.
 */
export async function createLogger(
  options: LogOptions,
  target: LogTarget = stderr(),
): Promise<LevelledLogger> {
  const { default: pino } = await import("pino");
  const isForPeople = options.format === "pretty" || (options.format === "auto" && target.isTTY === true);
  const logger = pino(pinoOptions(options, pino), isForPeople ? await linesForPeople(target) : target);
  return {
    get isDebugEnabled() {
      return logger.isLevelEnabled("debug");
    },
    setLevel(level) {
      logger.level = level;
    },
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
  };
}

function pinoOptions(
  { level, pid }: LogOptions,
  { stdSerializers, stdTimeFunctions }: typeof Pino,
): LoggerOptions {
  const error = stdSerializers.err;
  return {
    level,
    base: pid === undefined ? null : { pid },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: error, error, cause: error },
    redact: {
      paths: SECRET_NAMES.flatMap((name) => [name, `*.${name}`]),
      censor: CENSOR,
    },
    hooks: { streamWrite: scrub },
  };
}

function stderr(): LogTarget {
  const { stderr: stream } = process;
  // A reader that is gone is no reason to stop serving.
  stream.on("error", () => undefined);
  return {
    isTTY: stream.isTTY,
    hasColors: () => stream.isTTY && stream.hasColors(),
    write(line) {
      if (stream.writableLength <= MAX_BUFFERED_BYTES) stream.write(line);
    },
  };
}

async function linesForPeople(target: LogTarget): Promise<DestinationStream> {
  const { LogLines } = await import("./log-lines.ts");
  const lines = new LogLines(target.hasColors?.() ?? false);
  return {
    write(line) {
      const text = lines.text(escapeControls(line));
      if (text !== "") target.write(text);
    },
  };
}

/** Names that others chose must not control the terminal: control characters become text like `\u001b`. Line breaks and tabs stay. */
function escapeControls(line: string): string {
  return line
    .replace(/\\(?:u(00[01][0-9a-f])|[bfr]|.)/gi, (escape, code?: string) =>
      code === undefined && !/^\\[bfr]$/.test(escape) ? escape : `\\${escape}`,
    )
    .replace(/[\u007f-\u009f]/g, (character) => `\\\\u00${character.charCodeAt(0).toString(16)}`);
}
