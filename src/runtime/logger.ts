import * as fs from "node:fs";
import type { DestinationStream, LoggerOptions, pino as Pino } from "pino";
import { blockThread, systemClock } from "./clock.ts";

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

/** A log that may buffer lines for a moment. */
export interface FlushableLogger extends Logger {
  /** Resolves once all lines are written, or dropped as the reader takes none. */
  flush(): Promise<void>;
  setLevel(level: LogOptions["level"]): void;
}

/** Beyond this many buffered characters new lines are dropped: a log reader that has stopped must not fill the memory. */
const MAX_BUFFERED_CHARACTERS = 8 * 1024 * 1024;
/** How long the end of the process waits for a reader that takes nothing. */
const MAX_FLUSH_MS = 1_000;
/** A full pipe is tried again after so long. */
const RETRY_MS = 20;
const STDERR = 2;

/** Members whose values are never logged, not even by mistake. */
const SECRET_NAMES = ["authorization", "token", "bearer_token", "secret", "password", "cookie"];

/**
 * A `Logger` by pino, to stderr: on a terminal for people and at once, elsewhere as JSON from a buffer, so that a slow reader
 * does not hold up requests. The buffer is written out when the process ends.
 */
export async function createLogger(options: LogOptions, target?: LogTarget): Promise<FlushableLogger> {
  const { default: pino } = await import("pino");
  const { isTTY } = target ?? process.stderr;
  const isForPeople = options.format === "pretty" || (options.format === "auto" && isTTY === true);
  const direct = isForPeople ? await linesForPeople(target) : target;
  const buffered = direct === undefined ? new BufferedStderr() : undefined;
  if (buffered !== undefined) process.once("exit", () => buffered.flushSync());
  const logger = pino(pinoOptions(options, pino), direct ?? buffered);
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
    flush: async () => buffered?.flush(),
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

/**
 * Writes lines to stderr from a buffer, one write at a time. Pino's own destination is not used: its `flushSync` tries for ever
 * when the reader has just gone away or has stopped, and the process would never end.
 */
class BufferedStderr implements DestinationStream {
  #waiting = "";
  /** What a full pipe has left of the last write. */
  #rest: Buffer = Buffer.alloc(0);
  #isWriting = false;
  /** Called at the end of the write under way, if it was the last one. */
  #onIdle: () => void = () => undefined;

  write(line: string): void {
    if (this.#waiting.length + line.length > MAX_BUFFERED_CHARACTERS) return;
    this.#waiting += line;
    if (!this.#isWriting) this.#writeNext();
  }

  /** Resolves once all is written, or after `MAX_FLUSH_MS`. */
  async flush(): Promise<void> {
    if (!this.#isWriting) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onIdle = resolve;
    const timer = setTimeout(resolve, MAX_FLUSH_MS);
    await promise;
    clearTimeout(timer);
  }

  /**
   * Writes what waits, for a process that ends at once: a write under way may come later. What a stopped reader does not take
   * within `MAX_FLUSH_MS` is dropped.
   */
  flushSync(): void {
    const endMs = systemClock.monotonicMs() + MAX_FLUSH_MS;
    let rest = this.#take();
    while (rest.length > 0) {
      try {
        rest = rest.subarray(fs.writeSync(STDERR, rest));
      } catch (error) {
        if (!isFull(error) || systemClock.monotonicMs() > endMs) return;
        blockThread(RETRY_MS);
      }
    }
  }

  #take(): Buffer {
    const taken = Buffer.concat([this.#rest, Buffer.from(this.#waiting)]);
    this.#rest = Buffer.alloc(0);
    this.#waiting = "";
    return taken;
  }

  #writeNext(): void {
    const taken = this.#take();
    this.#isWriting = taken.length > 0;
    if (!this.#isWriting) return this.#onIdle();
    fs.write(STDERR, taken, (error, written) => {
      if (error === null || isFull(error)) this.#rest = taken.subarray(written);
      // After any other failure the reader is gone, which is no reason to stop serving.
      if (isFull(error)) setTimeout(() => this.#writeNext(), RETRY_MS).unref();
      else this.#writeNext();
    });
  }
}

function isFull(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EAGAIN";
}

async function linesForPeople(target: LogTarget | undefined): Promise<DestinationStream> {
  const { LogLines } = await import("./log-lines.ts");
  const lines = new LogLines((target ?? process.stderr).hasColors?.() ?? false);
  const write = target === undefined ? writeToTerminal : (text: string) => target.write(text);
  return {
    write(line) {
      const text = lines.text(escapeControls(line));
      if (text !== "") write(text);
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

function writeToTerminal(text: string): void {
  try {
    fs.writeSync(STDERR, text);
  } catch {
    // The terminal is gone or full (EIO, EAGAIN): the line is dropped, and the service continues.
  }
}
