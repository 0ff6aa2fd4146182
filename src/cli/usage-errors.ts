import type { Command } from "@oclif/core";
import { stripVTControlCharacters } from "node:util";
import { nearest } from "../domain/words/nearest.ts";
import { EvregError } from "../domain/error.ts";
import { withoutUserInfo } from "../domain/formats.ts";
import { plainCommand } from "./target/next-command.ts";

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

type FlagShapes = Readonly<Record<string, Command.Flag.Any>>;
type ReadFlags = Readonly<Record<string, unknown>>;

/** What oclif throws at a command line it cannot read, with the members its kinds of mistake carry. */
interface ParseError extends Error {
  readonly args?: readonly (string | Command.Arg.Any)[];
  readonly flags?: readonly string[];
  /** The command's flags and what was read of them; a mistake found before that has neither. */
  readonly parse?: {
    readonly input?: { readonly flags: FlagShapes };
    readonly output?: { readonly flags: ReadFlags };
  };
}

const PARSING = /^Parsing --(\S+) \n\t([\s\S]*)$/;
const NO_OPTION = /^Expected --([^\s=]+)=([\s\S]*) to be one of: (.*)$/;
const NO_ARGUMENT = /^Expected ([\s\S]*) to be one of: (.*)$/;
const SEE_HELP = "\nSee more help with --help";

/** Says oclif's mistake as an `EvregError` in the product's words; `undefined` when `error` is none of oclif's. */
export function asUsageError(error: unknown): EvregError | undefined {
  // oclif puts its own words around what a flag's parse function throws.
  if (error instanceof EvregError && PARSING.test(error.message))
    return usageError(plainSentence(error.message));
  if (!(error instanceof Error) || !("oclif" in error)) return undefined;
  const { flags, args, parse, message }: ParseError = error;
  const known = parse?.input?.flags ?? {};
  const typed = parse?.output?.flags ?? {};
  if (flags !== undefined) return usageError(unknownFlags(flags, known));
  const missing = missingFlags(known, typed);
  if (args !== undefined) return usageError(wrongArguments(args, missing));
  const faults = flagFaults(known, typed, missing);
  return usageError(faults.length > 0 ? faults.join(" ") : plainSentence(message));
}

function unknownFlags(flags: readonly string[], known: FlagShapes): string {
  // Values are left out: a token behind a mistyped --token must not be shown.
  const names = flags.map((flag) => flag.replace(/=.*$/s, ""));
  const [only = ""] = names;
  if (names.length > 1) return `There are no flags ${names.join(", ")} here.`;
  const meant = only.startsWith("--") ? nearest(only.slice(2), flagNames(known)) : undefined;
  return `There is no flag ${only} here${meant === undefined ? "." : `; did you mean --${meant}?`}`;
}

/** The words that flags may be among: those behind `--` are arguments. */
export function beforeDashes(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf("--");
  return end === -1 ? argv : argv.slice(0, end);
}

/** Reports flags that a command has not, where oclif found another mistake first: it takes the word behind one for an argument. */
export function unknownFlagAmong(argv: readonly string[], flags: FlagShapes): EvregError | undefined {
  const names = new Set([...flagNames(flags), "help"]);
  const unknown = beforeDashes(argv)
    .flatMap((word) => /^--([a-z][^=]*)/i.exec(word)?.[1] ?? [])
    .filter((name) => !names.has(name));
  if (unknown.length === 0) return undefined;
  return usageError(
    unknownFlags(
      unknown.map((name) => `--${name}`),
      flags,
    ),
  );
}

function flagNames(flags: FlagShapes): string[] {
  return Object.entries(flags).flatMap(([name, flag]) => {
    const negation = flag.type === "boolean" && flag.allowNo ? `no-${name}` : [];
    return [name, flag.aliases ?? [], negation].flat();
  });
}

function wrongArguments(args: NonNullable<ParseError["args"]>, missing: readonly string[]): string {
  const extra = args.filter((arg) => typeof arg === "string");
  if (extra.length > 0) {
    const shown = extra.map(withoutUserInfo).join(" ");
    return `Too many arguments: ${shown}. Quote an argument that holds spaces, and a pattern such as 'order.*'.`;
  }
  const names = args
    .filter((arg) => typeof arg !== "string")
    .map(({ name, description }) => {
      const shown = description === undefined ? "" : ` (${description.replace(/\.$/, "")})`;
      return `${name.toUpperCase()}${shown}`;
    });
  return `Missing: ${[...names, ...missing].join(", ")}.`;
}

function missingFlags(flags: FlagShapes, typed: ReadFlags): string[] {
  return Object.entries(flags)
    .filter(([name, { required }]) => required === true && typed[name] === undefined)
    .map(([name, flag]) => {
      const value = flag.type === "option" ? (flag.helpValue ?? []) : [];
      return [`--${name}`, value].flat().join(" ");
    });
}

/** Which rules among the flags are broken. Computed here again: oclif's own sentences repeat values, tokens too. */
function flagFaults(flags: FlagShapes, typed: ReadFlags, missing: readonly string[]): readonly string[] {
  const faults = new Set<string>();
  if (missing.length > 0) faults.add(`Missing: ${missing.join(", ")}.`);
  for (const [name, { exclusive = [], dependsOn = [] }] of Object.entries(flags)) {
    if (typed[name] === undefined) continue;
    for (const other of exclusive) {
      if (typeof other !== "string" || typed[other] === undefined) continue;
      const [first, second] = [name, other].toSorted();
      faults.add(`--${first} and --${second} cannot be given together; leave one out.`);
    }
    for (const other of dependsOn) {
      if (typeof other === "string" && typed[other] === undefined) {
        faults.add(`--${name} is only for use with --${other}.`);
      }
    }
  }
  return [...faults];
}

function plainSentence(message: string): string {
  // oclif dims the reasons on a terminal.
  const text = stripVTControlCharacters(message).replaceAll(SEE_HELP, "");
  const [, flag, reason = ""] = PARSING.exec(text) ?? [];
  if (flag !== undefined) return `--${flag}: ${reason.trim()}`;
  const [, option, value, options] = NO_OPTION.exec(text) ?? [];
  if (option !== undefined) return `--${option}: must be one of ${options}; not ${JSON.stringify(value)}.`;
  const [, argument, words] = NO_ARGUMENT.exec(text) ?? [];
  if (argument !== undefined) return `${JSON.stringify(argument)} is none of ${words}.`;
  const sentence = text
    .replace(/^Flag (--\S+) expects one of these values: /, "$1 needs a value, one of ")
    .replace(/^Flag (--\S+) expects a value$/, "$1 needs a value")
    .replace(/^Flag (--\S+) can only be specified once$/, "$1 is given twice");
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}

/** The part of oclif's `Config` that lists the commands. */
interface AllCommands {
  readonly commands: readonly Pick<Command.Loadable, "id" | "hidden">[];
}

/** What other programs have as a command, and what evreg once had. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  "actions delete": "actions retire NAME",
  "actions diff": "actions history NAME",
  "actions show": "actions get NAME",
  "actions types": "actions get NAME --json | jq .data.schemata | npx json-schema-to-typescript",
  "config check": "config --config FILE",
  context: "config --config FILE",
  "deliveries replay": "subscriptions replay NAME",
  "events deliveries": "deliveries --event ID",
  "events publish": "publish ACTION PAYLOAD",
  "events replay": "subscriptions replay NAME",
  open: "serve",
  register: "actions create NAME",
  retry: "deliveries retry ID",
  send: "publish ACTION PAYLOAD",
  start: "serve",
  subscribe: "subscriptions create",
  "subscriptions pause": "subscriptions update ID --no-active",
  "subscriptions resume": "subscriptions update ID --active",
  "subscriptions rotate": "subscriptions rotate-secret ID",
  "tokens delete": "tokens revoke ID",
  trigger: "actions sample NAME | evreg publish NAME -",
};

/** The refusal of words that are no command: it names the one that was probably meant, else all. */
export function unknownCommand(id: string, { commands }: AllCommands): EvregError {
  // A password may stand in an address that was typed in a wrong place; oclif has made its colons those of a command.
  const shown = withoutUserInfo(id);
  const words = shown.replace(/:(?!\/\/)/g, " ");
  const ids = commands.filter(({ hidden }) => !hidden).map((command) => command.id);
  const verbsOf = (topic: string) => ids.filter((one) => one.startsWith(`${topic}:`));
  // oclif takes the words behind a command without arguments for the rest of its name. Behind a bare topic, which lists,
  // they are rather a mistyped verb.
  const known = ids.findLast((one) => shown.startsWith(`${one}:`) && verbsOf(one).length === 0);
  if (known !== undefined) {
    const name = known.replaceAll(":", " ");
    return usageError(
      `Too many arguments: ${words.slice(name.length + 1)}. ${plainCommand(name)} takes none.`,
    );
  }
  const [topic = "", verb] = shown.split(":");
  const verbs = verbsOf(topic).map((one) => one.slice(topic.length + 1));
  if (verb !== undefined && verbs.length > 0) {
    const near = nearest(verb, verbs);
    const meant = OTHER_WORDS[`${topic} ${verb}`] ?? (near && `${topic} ${near}`);
    const advice = meant === undefined ? `${topic} has: ${verbs.join(", ")}.` : `did you mean ${meant}?`;
    return usageError(`There is no command ${JSON.stringify(words)}; ${advice}`);
  }
  const topics = [...new Set(ids.map((one) => one.split(":")[0]!))];
  const meant = Object.hasOwn(OTHER_WORDS, topic) ? OTHER_WORDS[topic] : nearest(topic, topics);
  const advice = meant === undefined ? `there are: ${topics.join(", ")}.` : `did you mean ${meant}?`;
  return usageError(`There is no command ${JSON.stringify(topic)}; ${advice}`);
}

/** The refusal of a command line that begins with a flag. Values are not repeated, as one may be a token. */
export function flagsFirst(): EvregError {
  return usageError(
    `Name the command before its flags, as in ${plainCommand("events --data FOLDER")}; ${plainCommand("--help")} lists the commands.`,
  );
}
