import { EvregError } from "../domain/error.ts";

/** What oclif throws at a command line it cannot read, with the members its kinds of mistake carry. */
interface ParseError extends Error {
  readonly oclif: unknown;
  readonly args?: readonly (string | { readonly name: string; readonly description?: string })[];
  readonly flags?: readonly string[];
}

const PARSING = /^Parsing --(\S+) \n\t([\s\S]*)$/;
const SEE_HELP = "\nSee more help with --help";
// oclif dims the reasons on a terminal.
// oxlint-disable-next-line no-control-regex
const STYLE = /\u001b\[\d+m/g;

export function usage(message: string, details: Record<string, unknown> = {}): EvregError {
  return new EvregError("usage", message, details);
}

/** The same mistake as an `EvregError` in the product's words; `undefined` when `error` is none of oclif's. */
export function usageMistake(error: unknown): EvregError | undefined {
  // oclif puts its own words around what a flag's parse function throws.
  if (error instanceof EvregError && PARSING.test(error.message)) return usage(plainSentence(error.message));
  if (!(error instanceof Error) || !("oclif" in error)) return undefined;
  const mistake: ParseError = error;
  if (Array.isArray(mistake.flags)) return usage(unknownFlags(mistake.flags));
  if (Array.isArray(mistake.args)) return usage(wrongArguments(mistake.args));
  return usage(plainSentence(mistake.message));
}

function unknownFlags(flags: readonly string[]): string {
  return flags.length === 1
    ? `There is no flag ${flags[0]} here.`
    : `There are no flags ${flags.join(", ")} here.`;
}

function wrongArguments(args: NonNullable<ParseError["args"]>): string {
  const extra = args.filter((arg) => typeof arg === "string");
  if (extra.length > 0) return `Too many arguments: ${extra.join(" ")}. Quote an argument that holds spaces.`;
  const missing = args.filter((arg) => typeof arg !== "string");
  const lines = missing.map((arg) => `${arg.name.toUpperCase()} (${arg.description ?? "required"})`);
  return `Missing: ${lines.join(", ")}.`;
}

function plainSentence(message: string): string {
  const text = message.replaceAll(STYLE, "").replaceAll(SEE_HELP, "");
  const parsing = PARSING.exec(text);
  if (parsing !== null) return `--${parsing[1]}: ${(parsing[2] ?? "").trim()}`;
  const reasons = text.replace(/^The following errors? occurred:\s*/, "").split(/\n\s*/);
  return reasons.map((reason) => (/[.!?]$/.test(reason) ? reason : `${reason}.`)).join(" ");
}
