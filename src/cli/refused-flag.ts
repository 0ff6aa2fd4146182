import { EvregError } from "../domain/error.ts";
import { ISO_TIME_EXPECTED } from "../domain/iso-time.ts";
import { usage } from "./usage.ts";

/** The flag whose file holds such a member. */
const FILE_OF: Readonly<Record<string, string>> = { schemata: "schema", filter: "filter" };
/** Members of the API that a flag of another name sets. */
const FLAG_OF: Readonly<Record<string, string>> = { scopes: "scope", expires_at: "expires" };

/**
 * A refusal of a typed value as the mistake on the command line that it is, a flag's under the flag's name; any other error
 * as it came, but for the name of the file that a schema came from. Local or remote makes no difference: the refusal is the same.
 * @param flags the command's, with only those that were typed defined
 * @param words of the command line, as they were typed
 */
export function refusedFlag(error: unknown, flags: object, words: readonly string[]): unknown {
  if (!(error instanceof EvregError) || (error.code !== "malformed" && error.code !== "invalid"))
    return error;
  const { field, message, value } = error.details;
  // A payload's own members have a longer message, and may be called as a flag is.
  if (typeof field !== "string" || typeof message !== "string" || error.message !== `${field}: ${message}`) {
    return error;
  }
  const file = fileOf(field, flags);
  if (file !== undefined) return new EvregError(error.code, `${file}: ${error.message}`, error.details);
  const member = field.replace(/\[\d+\]$/, "");
  const flag = FLAG_OF[member] ?? member.replaceAll("_", "-");
  const typed = Object.hasOwn(flags, flag) ? (flags as Record<string, unknown>)[flag] : undefined;
  if (typed === undefined) {
    return words.some((word) => isShown(word, value)) ? usage(error.message, error.details) : error;
  }
  // A number comes back from a server as the text it was sent as.
  const told = message === ISO_TIME_EXPECTED && TAKES_DATES.has(flag) ? `${message}; ${OR_A_DATE}` : message;
  const shown = typeof typed === "number" ? typed : value;
  return usage(`--${flag}: ${told}`, { flag, message: told, value: shown });
}

/** Whether a refusal's value is that word, which it holds the beginning of where that is long. */
function isShown(word: string, value: unknown): boolean {
  const shown = String(value);
  return word === shown || (shown.endsWith("…") && word.startsWith(shown.slice(0, -1)));
}

/** Flags whose text may be a date, see `timeFlag`. */
const TAKES_DATES = new Set(["from", "to"]);
const OR_A_DATE = "or a date alone, such as 2026-01-31, for its 00:00 UTC";

/** The file with the place at fault, for a person: what is wrong in it is no mistake on the command line. */
function fileOf(field: string, flags: object): string | undefined {
  const [root = ""] = field.split(/[.[]/);
  const path = (flags as Record<string, unknown>)[FILE_OF[root] ?? ""];
  if (typeof path !== "string") return undefined;
  return path === "-" ? "stdin" : path;
}
