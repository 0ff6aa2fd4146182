import type { Command } from "@oclif/core";
import { nearest } from "../config/values.ts";
import { EvregError } from "../domain/error.ts";
import { withoutUserInfo } from "../domain/formats.ts";

/** What a command's process ends with. Failures that are an `EvregError` end with that error's own code instead. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  /** A check that changes nothing found what an update would be refused for. */
  breaking: 5,
  /** A bulk went through, but some of its items were refused. */
  someFailed: 7,
  /** 128 + SIGINT, as shells count it. */
  interrupted: 130,
} as const;

/** A mistake on the command line: exit code 2, and a pointer to the help behind the message. */
export function usageError(message: string, details: Record<string, unknown> = {}): EvregError {
  return new EvregError("usage", message, details);
}

/** What oclif throws at a command line it cannot read, with the members its kinds of mistake carry. */
interface ParseError extends Error {
  readonly oclif: unknown;
  readonly args?: readonly (string | ArgShape)[];
  readonly flags?: readonly string[];
  readonly parse?: Parsing;
}

interface ArgShape {
  readonly name: string;
  readonly description?: string;
}

interface FlagShape {
  readonly type?: string;
  readonly char?: string;
  readonly required?: boolean;
  readonly helpValue?: string | readonly string[];
  readonly allowNo?: boolean;
  readonly aliases?: readonly string[];
  readonly exclusive?: readonly unknown[];
  readonly dependsOn?: readonly unknown[];
}

/** The command's flags and what was read of them; a mistake found before that has neither. */
interface Parsing {
  readonly input?: { readonly flags: Readonly<Record<string, FlagShape>> };
  readonly output?: { readonly flags: Readonly<Record<string, unknown>> };
}

const PARSING = /^Parsing --(\S+) \n\t([\s\S]*)$/;
const NO_OPTION = /^Expected --([^\s=]+)=([\s\S]*) to be one of: (.*)$/;
const NO_ARGUMENT = /^Expected ([\s\S]*) to be one of: (.*)$/;
const SEE_HELP = "\nSee more help with --help";
// oclif dims the reasons on a terminal.
// oxlint-disable-next-line no-control-regex
const STYLE = /\u001b\[\d+m/g;

/** The same mistake as an `EvregError` in the product's words; `undefined` when `error` is none of oclif's. */
export function asUsageError(error: unknown): EvregError | undefined {
  // oclif puts its own words around what a flag's parse function throws.
  if (error instanceof EvregError && PARSING.test(error.message))
    return usageError(plainSentence(error.message));
  if (!(error instanceof Error) || !("oclif" in error)) return undefined;
  const parseError: ParseError = error;
  const { flags, args, parse } = parseError;
  if (Array.isArray(flags)) return usageError(unknownFlags(parseError.flags ?? [], parse));
  if (Array.isArray(args)) return usageError(wrongArguments(parseError.args ?? [], parse));
  const faults = flagFaults(parse);
  return usageError(faults.length > 0 ? faults.join(" ") : plainSentence(parseError.message));
}

function unknownFlags(flags: readonly string[], parse: Parsing | undefined): string {
  // Without their values: a token behind a mistyped --token must not be shown.
  const names = flags.map((flag) => flag.replace(/=.*$/s, ""));
  const [only = ""] = names;
  if (names.length > 1) return `There are no flags ${names.join(", ")} here.`;
  const meant = only.startsWith("--") ? meantFlag(only.slice(2), flagNames(parse)) : undefined;
  return `There is no flag ${only} here${meant === undefined ? "." : `; did you mean --${meant}?`}`;
}

/** The one that was misspelled, or of which only the beginning was typed. */
function meantFlag(name: string, known: readonly string[]): string | undefined {
  const longer = known.filter((other) => other.startsWith(name));
  return nearest(name, known) ?? (longer.length === 1 ? longer[0] : undefined);
}

/**
 * The same for a flag that a command has not, where another mistake was found first: the word behind it, taken for an
 * argument, would be reported as wrong.
 * @param words of the command line
 * @param flags those that the command has
 */
export function unknownFlagAmong(
  words: readonly string[],
  flags: Readonly<Record<string, FlagShape>>,
): EvregError | undefined {
  const parse = { input: { flags } };
  const known = new Set([...flagNames(parse).map((name) => `--${name}`), "--help", "-h"]);
  for (const { char } of Object.values(flags)) if (char !== undefined) known.add(`-${char}`);
  const taking = new Set<string>();
  for (const [name, { type, char, aliases = [] }] of Object.entries(flags)) {
    if (type === "option") for (const one of [name, ...aliases]) taking.add(`--${one}`).add(`-${char}`);
  }
  const end = words.indexOf("--");
  const unknown = words
    .slice(0, end === -1 ? undefined : end)
    .filter((word, at, all) => /^--?[a-z]/i.test(word) && !taking.has(all[at - 1] ?? ""))
    .map((word) => word.replace(/=.*$/s, ""))
    .filter((word) => !known.has(word) && !(/^-[a-z]/i.test(word) && known.has(word.slice(0, 2))));
  return unknown.length === 0 ? undefined : usageError(unknownFlags(unknown, parse));
}

function flagNames(parse: Parsing | undefined): string[] {
  const flags = Object.entries(parse?.input?.flags ?? {});
  const aliases = flags.flatMap(([, flag]) => flag.aliases ?? []);
  const negations = flags.filter(([, flag]) => flag.allowNo === true).map(([name]) => `no-${name}`);
  return [...flags.map(([name]) => name), ...aliases, ...negations];
}

function wrongArguments(args: NonNullable<ParseError["args"]>, parse: Parsing | undefined): string {
  const extra = args.filter((arg) => typeof arg === "string");
  if (extra.length > 0) {
    const shown = extra.map(withoutUserInfo).join(" ");
    return `Too many arguments: ${shown}. Quote an argument that holds spaces.`;
  }
  const names = args
    .filter((arg) => typeof arg !== "string")
    .map(({ name, description }) => {
      const shown = description === undefined ? "" : ` (${description.replace(/\.$/, "")})`;
      return `${name.toUpperCase()}${shown}`;
    });
  return `Missing: ${[...names, ...missingFlags(parse)].join(", ")}.`;
}

function missingFlags(parse: Parsing | undefined): string[] {
  const given = parse?.output?.flags ?? {};
  return Object.entries(parse?.input?.flags ?? {})
    .filter(([name, { required }]) => required === true && given[name] === undefined)
    .map(([name, { helpValue }]) => [`--${name}`, helpValue ?? []].flat().join(" "));
}

/** Which rules among the flags are broken. Computed here again: oclif's own sentences repeat values, tokens too. */
function flagFaults(parse: Parsing | undefined): string[] {
  const given = parse?.output?.flags ?? {};
  const faults = new Set<string>();
  const missing = missingFlags(parse);
  if (missing.length > 0) faults.add(`Missing: ${missing.join(", ")}.`);
  for (const [name, { exclusive = [], dependsOn = [] }] of Object.entries(parse?.input?.flags ?? {})) {
    if (given[name] === undefined) continue;
    for (const other of exclusive) {
      if (typeof other !== "string" || given[other] === undefined) continue;
      const [first = "", second = ""] = [name, other].toSorted();
      faults.add(`--${first} and --${second} cannot be given together; leave one out.`);
    }
    for (const other of dependsOn) {
      if (typeof other === "string" && given[other] === undefined) {
        faults.add(`--${name} is only for use with --${other}.`);
      }
    }
  }
  return [...faults];
}

function plainSentence(message: string): string {
  const text = message.replaceAll(STYLE, "").replaceAll(SEE_HELP, "");
  const parsing = PARSING.exec(text);
  if (parsing !== null) return `--${parsing[1]}: ${(parsing[2] ?? "").trim()}`;
  const noOption = NO_OPTION.exec(text);
  if (noOption !== null) {
    return `--${noOption[1]}: must be one of ${noOption[3]}; not ${JSON.stringify(noOption[2])}.`;
  }
  const noArgument = NO_ARGUMENT.exec(text);
  if (noArgument !== null) return `${JSON.stringify(noArgument[1])} is none of ${noArgument[2]}.`;
  const sentence = text
    .replace(/^Flag (--\S+) expects one of these values: /, "$1 needs a value, one of ")
    .replace(/^Flag (--\S+) expects a value$/, "$1 needs a value")
    .replace(/^Flag (--\S+) can only be specified once$/, "$1 is given twice");
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}

/** The part of oclif's `Config` that lists the commands. */
interface Commands {
  readonly commands: readonly Pick<Command.Loadable, "id" | "hidden">[];
  findCommand(id: string): Pick<Command.Loadable, "args" | "flags"> | undefined;
}

/** For words that are no command: the one that was probably meant, else a list of all. */
export function unknownCommand(id: string, all: Commands): EvregError {
  // A password may stand in an address that was typed in a wrong place; oclif has made its colons those of a command.
  const shown = withoutUserInfo(id);
  const extra = extraArguments(shown, all);
  if (extra !== undefined) return extra;
  const { commands } = all;
  const commandIDs = commands.filter(({ hidden }) => !hidden).map((command) => command.id);
  const words = shown.split(":");
  const [topic = "", ...rest] = words;
  const verbs = commandIDs
    .filter((other) => other.startsWith(`${topic}:`))
    .map((other) => other.slice(topic.length + 1));
  if (rest.length > 0 && verbs.length > 0) {
    const verb = nearest(rest[0] ?? "", verbs);
    const advice =
      verb === undefined ? `${topic} has: ${verbs.join(", ")}.` : meantCommand(`${topic} ${verb}`);
    return usageError(`There is no command ${JSON.stringify(words.join(" "))}; ${advice}`);
  }
  const topics = [...new Set(commandIDs.map((other) => other.split(":")[0] ?? ""))];
  const known = nearest(topic, topics);
  const whole = [known, ...rest];
  const advice =
    known === undefined
      ? `there are: ${topics.join(", ")}.`
      : meantCommand(commandIDs.includes(whole.join(":")) ? whole.join(" ") : known);
  return usageError(`There is no command ${JSON.stringify(topic)}; ${advice}`);
}

/** oclif takes the words behind a command that has no arguments for the rest of its name. */
function extraArguments(id: string, all: Commands): EvregError | undefined {
  const ids = all.commands.map((command) => command.id);
  const [known] = all.commands
    // Behind a bare topic, which lists, it is rather a mistyped verb.
    .filter(({ hidden, id: other }) => !hidden && id.startsWith(`${other}:`) && !isTopic(other, ids))
    .toSorted((a, b) => b.id.length - a.id.length);
  if (known === undefined) return undefined;
  const name = known.id.replaceAll(":", " ");
  const words = id.slice(known.id.length + 1).replace(/:(?!\/\/)/g, " ");
  const { file } = all.findCommand(known.id)?.flags ?? {};
  const files = file === undefined ? "." : `; files go behind --file: evreg ${name} --file ${words}`;
  return usageError(`Too many arguments: ${words}. evreg ${name} takes none${files}`);
}

function isTopic(id: string, ids: readonly string[]): boolean {
  return ids.some((other) => other.startsWith(`${id}:`));
}

function meantCommand(command: string): string {
  return `did you mean ${command}?`;
}

/**
 * For a command line that begins with a flag. Values are not repeated, as one may be a token, and only flags that the
 * command has are put behind it.
 */
export function flagsFirst(argv: readonly string[], commands: Commands): EvregError {
  const advice = reordered(argv, commands);
  return usageError(
    `Name the command before its flags${advice === undefined ? "; evreg --help lists the commands." : `: ${advice}`}`,
  );
}

function reordered(argv: readonly string[], commands: Commands): string | undefined {
  for (let at = 0; at < argv.length; at += 1) {
    for (const count of [2, 1]) {
      const words = argv.slice(at, at + count);
      const command = words.length === count ? commands.findCommand(words.join(":")) : undefined;
      if (command === undefined) continue;
      const flags = argv.slice(0, at).flatMap((word) => flagForm(word, command));
      const more =
        argv.length > at + count || Object.values(command.args).some(({ required }) => required === true);
      return ["evreg", ...words, ...(more ? ["…"] : []), ...flags].join(" ");
    }
  }
  return undefined;
}

function flagForm(word: string, command: Pick<Command.Loadable, "flags">): string[] {
  const name = /^--([^=]+)/.exec(word)?.[1] ?? "";
  const flag = Object.hasOwn(command.flags, name) ? command.flags[name] : undefined;
  if (flag === undefined) return [];
  return [`--${name}`, flag.type === "option" ? (flag.helpValue ?? "VALUE") : []].flat();
}
