import { styleText } from "node:util";
import { spanText } from "../domain/formats.ts";
import { ATTEMPT_ERROR_WORDS } from "../domain/words/attempts.ts";

type TextMember =
  | "action"
  | "outcome"
  | "to"
  | "error"
  | "refusal"
  | "why"
  | "method"
  | "path"
  | "reason"
  | "by"
  | "address";
type NumberMember = "event" | "attempt" | "status" | "durationMs" | "retryInMs";

/** The members that have a place in a line, as `delivery/store-calls.ts` and `http/response.ts` log them; others may come with them. */
interface LogRecord
  extends Partial<Readonly<Record<TextMember, string>>>, Partial<Readonly<Record<NumberMember, number>>> {
  readonly time: string;
  readonly level: string;
  readonly msg?: string;
  /** Where several processes write to one log. */
  readonly pid?: number;
  readonly err?: unknown;
}

type LogFields = Omit<LogRecord, "time" | "level" | "msg" | "pid">;
type LogStyle = Parameters<typeof styleText>[0];

/** How an attempt is shown by its outcome, and what is said of it behind. */
const OUTCOMES: Readonly<Record<string, readonly [style: LogStyle, ...notes: string[]]>> = {
  delivered: ["green"],
  filtered: ["dim"],
  retried: ["yellow"],
  interrupted: ["yellow"],
  failed: ["red", "failed for good"],
  gone: ["red", "failed for good", "subscription deactivated"],
};

const LEVELS: Readonly<Record<string, readonly [word: string, style: LogStyle]>> = {
  warn: ["warning: ", "yellow"],
  error: ["error: ", "red"],
};

/**
 * Lines of the log for a person: the JSON of one goes in, and text comes out. An attempt, and a request, are a short line each;
 * all else is its message with its members behind it.
 */
export class LogLines {
  readonly #colors: boolean;
  /** The read that the last line reports, if it reports one. */
  #lastRead: string | undefined;

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
    const { time, level, msg: message = "", pid, ...fields } = record;
    const read = message === "request" && level === "debug" ? readOf(fields) : undefined;
    if (read !== undefined && (QUIET.test(read) || read === this.#lastRead)) return "";
    this.#lastRead = read;
    const start = pid === undefined ? clockTime(time) : `${clockTime(time)} ${pid}`;
    return `${this.#styled("dim", start)}  ${this.#line(level, message, fields)}\n`;
  }

  #line(level: string, message: string, fields: LogFields): string {
    if (fields.outcome !== undefined) return this.#attempt(fields.outcome, fields);
    return message === "request" ? this.#request(fields) : this.#other(level, message, fields);
  }

  #attempt(outcome: string, fields: LogFields): string {
    const { action, event, to, attempt = 1, status, error, durationMs, retryInMs, refusal, why } = fields;
    const [style, ...said] = OUTCOMES[outcome] ?? ["dim"];
    const results: string[] = [];
    if (status !== undefined) results.push(String(status));
    // A consumer reports no status.
    else if (outcome === "filtered" || (outcome === "delivered" && error === undefined))
      results.push(outcome);
    if (error !== undefined) results.push(reasonOf(error, refusal, why));
    // How soon it was refused says nothing.
    const isTimed = error === undefined || error === "timeout";
    if (isTimed && durationMs !== undefined) results.push(spanText(durationMs));
    const notes: string[] = [];
    if (attempt > 1) notes.push(`attempt ${attempt}`);
    if (retryInMs !== undefined) notes.push(retryInMs <= 0 ? "again now" : `again in ${spanText(retryInMs)}`);
    notes.push(...said);
    if (notes.length > 0) results.push(notes.join(", "));
    return `${action}  #${event}  → ${to}  ${this.#styled(style, results.join("  "))}`;
  }

  #request({ method, path, status = 0, durationMs = 0, reason, by, address }: LogFields): string {
    const style: LogStyle = status >= 500 ? "red" : status >= 400 ? "yellow" : "dim";
    const line = this.#styled(style, `${method} ${path}  ${status}  ${spanText(durationMs)}`);
    const why = reason === undefined ? "" : `  ${reason}`;
    const isOwn = by === undefined || by === "local" || by === "nobody";
    const who = isOwn ? "" : this.#styled("dim", `  ${by}${address === undefined ? "" : ` ${address}`}`);
    return `${line}${why}${who}`;
  }

  #other(level: string, message: string, { err, ...fields }: LogFields): string {
    const [word, style] = LEVELS[level] ?? [];
    const text = style === undefined ? message : this.#styled(style, `${word}${message}`);
    const members = Object.entries(fields).map(([name, value]) => `${name}=${shown(value)}`);
    const rest = members.length === 0 ? "" : `  ${this.#styled("dim", members.join(" "))}`;
    return `${text}${rest}${errorLines(err)}`;
  }

  #styled(style: LogStyle, text: string): string {
    return this.#colors ? styleText(style, text, { validateStream: false }) : text;
  }
}

/** What programs ask by themselves, all the time. */
const QUIET = /^\/health$|^\/v1\/subscriptions\/\d+\/(?:claims|finishes)$/;

/** The status that is logged for a request whose caller left. */
const LEFT = 499;

/** The path of a read that went well, and of a claim, also one whose caller left. */
function readOf({ method, path = "", status = 0 }: LogFields): string | undefined {
  if (status >= 400 && status !== LEFT) return undefined;
  return (method === "GET" && status < 400) || QUIET.test(path) ? path : undefined;
}

/** `14:03:09`, in the zone of this machine. */
function clockTime(iso: string): string {
  return new Date(iso).toTimeString().slice(0, 8);
}

function reasonOf(code: string, refusal: string | undefined, why: string | undefined): string {
  const words: Readonly<Record<string, string>> = ATTEMPT_ERROR_WORDS;
  return refusal ?? `${words[code] ?? code}${why === undefined ? "" : `: ${why}`}`;
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
