import { EvregError } from "../domain/error.ts";
import { usage } from "./usage.ts";

/** Members of the API that a flag of another name sets. */
const FLAG_OF: Readonly<Record<string, string>> = { scopes: "scope", expires_at: "expires" };

/**
 * A refusal of the value of a typed flag as the mistake on the command line that it is, under the flag's name; any other
 * error as it came. Local or remote makes no difference: the refusal is the same.
 * @param flags the command's, with only those that were typed defined
 */
export function refusedFlag(error: unknown, flags: object): unknown {
  if (!(error instanceof EvregError) || (error.code !== "malformed" && error.code !== "invalid"))
    return error;
  const { field, message, value } = error.details;
  // A payload's own members have a longer message, and may be called as a flag is.
  if (typeof field !== "string" || typeof message !== "string" || error.message !== `${field}: ${message}`) {
    return error;
  }
  const member = field.replace(/\[\d+\]$/, "");
  const flag = FLAG_OF[member] ?? member.replaceAll("_", "-");
  const typed = Object.hasOwn(flags, flag) ? (flags as Record<string, unknown>)[flag] : undefined;
  if (typed === undefined) return error;
  // A number comes back from a server as the text it was sent as.
  return usage(`--${flag}: ${message}`, { flag, message, value: typeof typed === "number" ? typed : value });
}
