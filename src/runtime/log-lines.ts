import { styleText } from "node:util";
import { ATTEMPT_ERROR_WORDS } from "../domain/attempt-words.ts";

/** As `delivery/attempt.ts` logs attempts. */
interface AttemptFields {
  readonly action?: string;
  readonly event?: number;
  readonly to?: string;
  readonly attempt?: number;
  readonly status?: number;
  readonly error?: string;
  readonly refusal?: string;
  /** Why TLS failed, in words. */
  readonly why?: string;
  readonly durationMs?: number;
  readonly retryInMs?: number;
}

/** As `http/response.ts` logs requests. */
interface RequestFields {
  readonly method?: string;
  readonly path?: string;
  readonly status?: number;
  readonly durationMs?: number;
  readonly reason?: string;
  readonly by?: string;
  readonly address?: string;
}

/** Others have members of their own. */
interface LogRecord extends AttemptFields, RequestFields {
  readonly time: string;
  readonly level: string;
  readonly msg?: string;
  readonly err?: unknown;
}
type Style = Parameters<typeof styleText>[0];

/** Columns grow with what comes, up to this, and never past it: a long name moves its own line only. */
const MAX_ACTION = 24;
const MAX_EVENT = 8;
const MAX_HANDLER = 28;

const OUTCOMES: Readonly<Record<string, Style>> = {
  delivered: "green",
  filtered: "dim",
  "attempt failed, will be retried": "yellow",
  "attempt cut short, delivery handed back": "yellow",
  "delivery failed for good": "red",
  "delivery failed for good, the handler is gone": "red",
};

const LEVELS: Readonly<Record<string, readonly [word: string, style: Style]>> = {
  warn: ["warning: ", "yellow"],
  error: ["error: ", "red"],
};

/**
 * Lines of the log for a person: the JSON of one goes in, and text comes out. An attempt, and a request, are a short line each;
 * all else is its message with its members behind it.
 */
export class LogLines {
  readonly #colors: boolean;
  /** The read that the last line told of. */
  #lastRead: string | undefined;
  #actionWidth = 0;
  #eventWidth = 0;
  #handlerWidth = 0;

  constructor(colors: boolean) {
    this.#colors = colors;
  }

  /**
   * Empty for what would only push the rest off the screen: checks of the health, claims of consumers, and the same read once
   * more, as when a command waits.
   * @param json of one record, without control characters that would act on a terminal
   */
  text(json: string): string {
    let record: LogRecord;
    try {
      record = JSON.parse(json) as LogRecord;
    } catch {
      return json;
    }
    const { time, level, msg: message = "", ...fields } = record;
    const at = this.#styled("dim", clockTime(time));
    const read = message === "request" && level === "debug" ? readOf(fields) : undefined;
    if (read !== undefined && (QUIET.test(read) || read === this.#lastRead)) return "";
    this.#lastRead = read;
    if (OUTCOMES[message] !== undefined && fields["event"] !== undefined) {
      return `${at}  ${this.#attempt(message, fields)}\n`;
    }
    if (message === "request") return `${at}  ${this.#request(fields)}\n`;
    return `${at}  ${this.#other(level, message, fields)}\n`;
  }

  #attempt(message: string, fields: AttemptFields): string {
    const {
      action = "",
      event = 0,
      to = "",
      attempt = 1,
      status,
      error,
      durationMs,
      retryInMs,
      refusal,
      why,
    } = fields;
    const id = `#${event}`;
    this.#actionWidth = wider(this.#actionWidth, action, MAX_ACTION);
    this.#eventWidth = wider(this.#eventWidth, id, MAX_EVENT);
    this.#handlerWidth = wider(this.#handlerWidth, to, MAX_HANDLER);
    const parts = [
      action.padEnd(this.#actionWidth),
      id.padEnd(this.#eventWidth),
      `→ ${to.padEnd(this.#handlerWidth)}`,
    ];
    const results: string[] = [];
    if (status !== undefined) results.push(String(status));
    // Of what a consumer took there is no status.
    else if (message === "filtered" || (message === "delivered" && error === undefined))
      results.push(message);
    if (error !== undefined) results.push(reasonOf(error, refusal, why));
    // How soon it was refused says nothing.
    const isTold = error === undefined || error === "timeout";
    if (isTold && durationMs !== undefined) results.push(span(durationMs));
    const notes: string[] = [];
    if (attempt > 1) notes.push(`attempt ${attempt}`);
    if (retryInMs !== undefined) notes.push(retryInMs <= 0 ? "again now" : `again in ${span(retryInMs)}`);
    if (message.startsWith("delivery failed")) notes.push("failed for good");
    if (message.endsWith("gone")) notes.push("subscription deactivated");
    const result = this.#styled(OUTCOMES[message]!, results.join("  "));
    const note = notes.length === 0 ? "" : `  ${this.#styled(OUTCOMES[message]!, notes.join(", "))}`;
    return `${parts.join("  ")}  ${result}${note}`;
  }

  #request({
    method = "",
    path = "",
    status = 0,
    durationMs = 0,
    reason,
    by,
    address,
  }: RequestFields): string {
    const style: Style = status >= 500 ? "red" : status >= 400 ? "yellow" : "dim";
    const line = this.#styled(style, `${method} ${path}  ${status}  ${span(durationMs)}`);
    const why = reason === undefined ? "" : `  ${reason}`;
    const isOwn = by === undefined || by === "local" || by === "nobody";
    const who = isOwn ? "" : this.#styled("dim", `  ${by}${address === undefined ? "" : ` ${address}`}`);
    return `${line}${why}${who}`;
  }

  #other(level: string, message: string, { err, ...fields }: Omit<LogRecord, "time" | "level">): string {
    const [word, style] = LEVELS[level] ?? [];
    const text = style === undefined ? message : this.#styled(style, `${word}${message}`);
    const members = Object.entries(fields).map(([name, value]) => `${name}=${shown(value)}`);
    const rest = members.length === 0 ? "" : `  ${this.#styled("dim", members.join(" "))}`;
    return `${text}${rest}${errorLines(err)}`;
  }

  #styled(style: Style, text: string): string {
    return this.#colors ? styleText(style, text, { validateStream: false }) : text;
  }
}

/** What programs ask by themselves, all the time. */
const QUIET = /^\/health$|^\/v1\/subscriptions\/\d+\/(?:claims|finishes)$/;

/** In the log, of a request whose caller left. */
const LEFT = 499;

/** The path of a read that went well, and of a claim, also one whose caller left. */
function readOf({ method, path = "", status = 0 }: RequestFields): string | undefined {
  if (status >= 400 && status !== LEFT) return undefined;
  return (method === "GET" && status < 400) || QUIET.test(path) ? path : undefined;
}

function wider(width: number, text: string, max: number): number {
  return Math.max(width, Math.min(text.length, max));
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

function clockTime(iso: string): string {
  const date = new Date(iso);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

function reasonOf(code: string, refusal: string | undefined, why: string | undefined): string {
  const words: Readonly<Record<string, string>> = ATTEMPT_ERROR_WORDS;
  return refusal ?? `${words[code] ?? code}${why === undefined ? "" : `: ${why}`}`;
}

/** `12 ms`, `1.4 s`, `2 min`, `6 h` */
function span(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${Number((ms / 1_000).toFixed(1))} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  return `${Number((ms / 3_600_000).toFixed(1))} h`;
}

function shown(value: unknown): string {
  if (typeof value === "string") return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  return JSON.stringify(value) ?? "";
}

/** The stack of an error, as pino writes it, on lines of its own. */
function errorLines(err: unknown): string {
  if (err === undefined) return "";
  const { stack = shown(err) } = Object(err) as { readonly stack?: string };
  return `\n${stack.replace(/^/gm, "    ")}`;
}
