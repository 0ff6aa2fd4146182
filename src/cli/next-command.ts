import { printableLine } from "./printable.ts";
import { flagWords } from "./flag-words.ts";
import type { TargetFlags } from "./target.ts";

/** What the command that runs was told about where to act. A process runs one. */
let typed: TargetFlags = {};

export function rememberTarget(flags: TargetFlags): void {
  const { url, context, token, "token-file": tokenFile, data, config } = flags;
  typed = { url, context, token, "token-file": tokenFile, data, config };
}

/**
 * A command for a person to type next, such as `evreg deliveries get 7 --data folder`: where this one acted, not where a
 * bare one would.
 * @param words without `evreg`
 */
export function nextCommand(words: string): string {
  return printableLine(`evreg ${words}${flagWords(typed)}`);
}

/** The command that starts a server on the data folder this one acted on. */
export function serveCommand(): string {
  const { data, config } = typed;
  return printableLine(`evreg serve${flagWords({ data, config })}`);
}
