import { styleText } from "node:util";
import type { PayloadError } from "../domain/action.ts";
import { asEvregError, type ErrorDetails, type EvregError, exitCodeFor } from "../domain/error.ts";
import { encodeJson } from "../json/raw-json.ts";
import { type Logger, scrub } from "../runtime/logger.ts";
import { flagWords, escapeControlInJson, escapeControl, escapeControlKeepingLines } from "./io/text.ts";
import { nextCommand, plainCommand, serveCommand, withTarget } from "./target/next-command.ts";

/**
 * Prints a failure on stderr and answers its exit code. For a person: what happened, the details, what to do next. With
 * `--json` (or jsonl): the API's error body `{"error", "details", "code"}` as the only line.
 * @param options.stack shows a person where a fault of evreg's own arose; not given, `EVREG_DEBUG` says
 */
export function reportError(
  failure: unknown,
  options: { json: boolean; command: string | undefined; stack?: boolean },
): number {
  const error = asEvregError(failure);
  process.stderr.write(
    options.json ? `${escapeControlInJson(encodeJson(error.body()))}\n` : text(error, options),
  );
  return exitCodeFor(error);
}

function text(
  error: EvregError,
  { command, stack = process.env["EVREG_DEBUG"] === "1" }: { command: string | undefined; stack?: boolean },
): string {
  const mark = styleText("red", "Error:", { stream: process.stderr });
  const lines = [`${mark} ${escapeControlKeepingLines(withTarget(messageFor(error)))}`];
  lines.push(...detailLines(error).map((line) => `  ${line}`));
  if (error.code === "internal" && error.cause instanceof Error) {
    const { stack: trace, message } = error.cause;
    lines.push(`  cause: ${escapeControlKeepingLines(scrub(stack ? (trace ?? message) : message))}`);
  }
  const next = nextStep(error, command);
  if (next !== undefined) lines.push(next);
  return `${lines.join("\n")}\n`;
}

/** What the message does not hold: the wrong value, and lists such as breaking changes. All else is for programs. */
function detailLines(error: EvregError): string[] {
  const lines: string[] = [];
  for (const [name, value] of Object.entries(error.details)) {
    if (name === "errors" && Array.isArray(value)) {
      lines.push(...brokenRules(error.details).map((rule) => `- ${rule}`));
    } else if (name !== "value" && Array.isArray(value)) {
      for (const item of value.filter((one) => !isMentioned(error, one))) {
        lines.push(`- ${listItem(item)}`, ...breakDetails(Object(item) as object).map((line) => `  ${line}`));
      }
    } else if (name === "value") {
      const wrong = wrongValue(error.message, error.details);
      if (wrong !== undefined) lines.push(`value: ${wrong}`);
    }
  }
  return lines;
}

/** The value at fault, where there is one and the message does not hold it. */
export function wrongValue(message: string, { value }: ErrorDetails): string | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === "string" && mentions(message, value) ? undefined : shortDetail(value);
}

/** Whether a message holds a value as a word of its own: `string` does not mention `str`. */
function mentions(message: string, value: string): boolean {
  if (value === "") return true;
  for (let at = message.indexOf(value); at !== -1; at = message.indexOf(value, at + 1)) {
    const around = [message.charAt(at - 1), message.charAt(at + value.length)];
    if (!around.some((character) => /[\p{L}\p{N}_]/u.test(character))) return true;
  }
  return false;
}

function isMentioned(error: EvregError, item: unknown): boolean {
  const { message } = (item ?? {}) as Record<string, unknown>;
  return typeof message === "string" && error.message.includes(message);
}

function listItem(item: unknown): string {
  if (typeof item === "string") return escapeControl(item);
  if (typeof item !== "object" || item === null) return shortDetail(item);
  const { pointer, field, message } = item as Record<string, unknown>;
  const place = typeof pointer === "string" ? pointer || "(root)" : field;
  if (typeof place !== "string" || typeof message !== "string") return shortDetail(item);
  return `${escapeControl(place)}: ${escapeControl(message)}`;
}

/** The message for a person: with what was probably meant by the name of a record that is not there. */
function messageFor({ code, message, details }: EvregError): string {
  const { suggestion } = details;
  if (code !== "not_found") return message;
  return typeof suggestion === "string" ? `${message} Did you mean ${suggestion}?` : message;
}

/** What to do where only the command line knows; other messages say it themselves. */
function nextStep({ code, details }: EvregError, command: string | undefined): string | undefined {
  const { record, suggestion, application = "NAME", cause, option } = details;
  if (code === "unauthorized") return "Give a token with --token-file FILE or EVREG_TOKEN.";
  if (code === "conflict" && typeof suggestion === "string") {
    const flags = flagWords({ application: String(application), schema: "FILE" });
    const anew = `As a new version: ${nextCommand(`actions create ${suggestion}${flags}`)}`;
    return command === "actions update"
      ? `${anew}\nOr apply it all the same, this once (scope admin): the same command with --compatibility none.`
      : anew;
  }
  if (code === "forbidden")
    return `Whoever holds the scope admin can make one: ${plainCommand("tokens create --help")}`;
  if (code === "not_found") {
    if (typeof record !== "string") return undefined;
    return `See those there are: ${nextCommand(record === "delivery" ? "deliveries" : `${record}s`)}`;
  }
  if (code === "unreachable" && cause === "ECONNREFUSED") {
    return `Start a server: ${serveCommand()}. Or name another with --url.`;
  }
  if (code !== "usage") return undefined;
  if (option === "allowInsecureToken") return "To allow it: EVREG_ALLOW_INSECURE_TOKEN=true";
  return `See: ${plainCommand(`${command === undefined ? "" : `${command} `}--help`)}`;
}

/** Longest detail shown on a line of its own; a whole payload would push the message off the screen. */
const LONGEST_DETAIL = 400;

/** What a break has beside its message: a payload that shows it, and what could be done instead. */
export function breakDetails({ example, remedy }: { example?: unknown; remedy?: unknown }): string[] {
  return [
    ...(example === undefined ? [] : [`shown by: ${shortDetail(example)}`]),
    ...(typeof remedy === "string" ? [`instead: ${escapeControl(remedy)}`] : []),
  ];
}

/** The rules that a payload breaks, without the first, which is in the message. */
function brokenRules({ errors }: ErrorDetails): string[] {
  if (!Array.isArray(errors)) return [];
  return (errors as readonly Partial<PayloadError>[]).slice(1).map(brokenRule);
}

/** `total must be a number: "7"` */
export function brokenRule({ field = "", message = "", value }: Partial<PayloadError>): string {
  const shown = value === null || value === undefined ? "" : `: ${shortDetail(value)}`;
  return `${escapeControl(field === "" ? "it" : field)} ${escapeControl(message)}${shown}`;
}

/** A value as JSON on one line, so that the text "5" is not taken for a number; cut where it is long. */
function shortDetail(value: unknown): string {
  const shown = escapeControlInJson(encodeJson(value));
  return shown.length > LONGEST_DETAIL ? `${shown.slice(0, LONGEST_DETAIL)}…` : shown;
}

let server: { readonly log: Logger | undefined } | undefined;

/** Called by a command that serves: from now on whatever ends the process unasked is a fault, and belongs in its log. */
export function setCrashLog(log: Logger | undefined): void {
  server = { log };
}

export function isServer(): boolean {
  return server !== undefined;
}

/** Answers whether there is a log that has it now, with its stack, for an operator to report. */
export function logCrash(error: unknown): boolean {
  if (server?.log === undefined) return false;
  server.log.error({ err: error }, "evreg failed by a fault of its own; please report it with this stack");
  return true;
}
