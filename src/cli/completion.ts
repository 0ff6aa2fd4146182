import type { Command } from "@oclif/core";
import { homedir } from "node:os";
import { HELP_TOPICS } from "./help-topics.ts";

/** What completion looks at of oclif's `Config`. */
interface Commands {
  readonly commands: readonly CommandMeta[];
  readonly topics: readonly { readonly name: string; readonly description?: string | undefined }[];
}

type CommandMeta = Pick<Command.Loadable, "id" | "args" | "flags" | "hidden" | "summary">;
type FlagMeta = CommandMeta["flags"][string];

export interface Candidate {
  readonly value: string;
  readonly about?: string | undefined;
}

/** What is named by numbers or names that only a server knows, or by those of the user's contexts. */
export type NameKind = "action" | "application" | "subscription" | "token" | "replay" | "context";

/** What can stand where the cursor is. */
export type CompletionTarget =
  | { readonly kind: "words"; readonly candidates: readonly Candidate[] }
  /** @see NameKind; `prefix` is what the word begins with before the name, such as `--action=`. */
  | {
      readonly kind: "names";
      readonly of: NameKind;
      readonly prefix: string;
      readonly flags: FlagValues;
    }
  | { readonly kind: "files" }
  | { readonly kind: "folders" };

/** The values of the flags before the cursor. */
export type FlagValues = Readonly<Record<string, string>>;

const NOTHING: CompletionTarget = { kind: "words", candidates: [] };

/** Arguments by topic (or command) and name. Numbers of events and deliveries are too many to choose from. */
const ARGUMENT_KINDS: Readonly<Record<string, NameKind | "files">> = {
  "publish.action": "action",
  "trigger.action": "action",
  "actions.name": "action",
  "subscriptions.id": "subscription",
  "replays.id": "replay",
  "tokens.id": "token",
  "context.name": "context",
  "config.file": "files",
  "import.file": "files",
};
/** Flags by name and the value that their help shows. */
const FLAG_KINDS: Readonly<Record<string, NameKind>> = {
  "action NAME": "action",
  "action PATTERN": "action",
  "successor NAME": "action",
  "application NAME": "application",
  "subscription ID|NAME": "subscription",
  "context NAME": "context",
};
/** Their argument is a name that is not there yet. */
const NAMES_NEW_RECORD = new Set(["actions:create", "context:add", "tokens:create"]);

/** @param words those behind the program's name up to the cursor; the last one is being typed and may be empty */
export function completionAt(words: readonly string[], all: Commands): CompletionTarget {
  const typed = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const commands = all.commands.filter(({ hidden }) => !hidden);
  if (before[0] === "help") return helpTarget(before.slice(1), commands, all);
  if (before.length === 0)
    return wordsTarget(typed.startsWith("-") ? PROGRAM_FLAGS : firstWords(commands, all));
  const [topic = "", verb] = before;
  const verbs = verbsOf(topic, commands);
  if (verbs.length > 0 && verb === undefined && !typed.startsWith("-")) return wordsTarget(verbs);
  const named = commands.find(({ id }) => id === `${topic}:${verb}`);
  const command = named ?? commands.find(({ id }) => id === topic);
  if (command === undefined) return NOTHING;
  return commandTarget(command, before.slice(named === undefined ? 1 : 2), typed);
}

const PROGRAM_FLAGS: readonly Candidate[] = [{ value: "--help" }, { value: "--version" }];

function wordsTarget(candidates: readonly Candidate[]): CompletionTarget {
  return { kind: "words", candidates };
}

function helpTarget(
  before: readonly string[],
  commands: readonly CommandMeta[],
  all: Commands,
): CompletionTarget {
  const [topic] = before;
  if (topic !== undefined) return wordsTarget(before.length === 1 ? verbsOf(topic, commands) : []);
  return wordsTarget([
    ...firstWords(commands, all),
    ...HELP_TOPICS.map((value) => ({ value, about: "topic of help" })),
  ]);
}

function firstWords(commands: readonly CommandMeta[], { topics }: Commands): Candidate[] {
  const names = [...new Set(commands.map(({ id }) => id.split(":")[0] ?? ""))].toSorted();
  return names.map((value) => ({
    value,
    about:
      topics.find(({ name }) => name === value)?.description ??
      commands.find(({ id }) => id === value)?.summary,
  }));
}

function verbsOf(topic: string, commands: readonly CommandMeta[]): Candidate[] {
  return commands
    .filter(({ id }) => id.startsWith(`${topic}:`))
    .map(({ id, summary }) => ({ value: id.slice(topic.length + 1), about: summary }));
}

/** @param before the words between the command's own and the one that is typed */
function commandTarget(command: CommandMeta, before: readonly string[], typed: string): CompletionTarget {
  const flagValues: Record<string, string> = {};
  let waiting: FlagMeta | undefined;
  let onlyArguments = false;
  let typedArgs = 0;
  for (const word of before) {
    if (waiting !== undefined) {
      flagValues[waiting.name] = word;
      waiting = undefined;
    } else if (onlyArguments || !/^-./.test(word)) typedArgs += 1;
    else if (word === "--") onlyArguments = true;
    else {
      const { flag, value } = flagOf(word, command);
      if (flag === undefined) continue;
      flagValues[flag.name] = value ?? "";
      if (flag.type === "option" && value === undefined) waiting = flag;
    }
  }
  if (waiting !== undefined) return flagValueTarget(waiting, "", flagValues);
  if (!onlyArguments && typed.startsWith("-")) {
    const { flag, value } = flagOf(typed, command);
    if (value === undefined) return wordsTarget(flagWords(command, flagValues));
    return flag === undefined
      ? NOTHING
      : flagValueTarget(flag, typed.slice(0, typed.indexOf("=") + 1), flagValues);
  }
  const args = Object.entries(command.args);
  const last = args.at(-1);
  const [name, arg] = args[typedArgs] ?? (last?.[1].multiple === true ? last : []);
  if (name === undefined) return onlyArguments ? NOTHING : wordsTarget(flagWords(command, flagValues));
  if (arg?.options !== undefined) return wordsTarget(arg.options.map((value) => ({ value })));
  const kind = NAMES_NEW_RECORD.has(command.id)
    ? undefined
    : ARGUMENT_KINDS[`${command.id.split(":")[0]}.${name}`];
  if (kind === undefined) return NOTHING;
  return kind === "files" ? { kind } : { kind: "names", of: kind, prefix: "", flags: flagValues };
}

function flagOf(
  word: string,
  command: CommandMeta,
): { flag: FlagMeta | undefined; value: string | undefined } {
  const [, name = "", value] = /^--?([^=]*)(?:=(.*))?$/s.exec(word) ?? [];
  const flags = Object.values(command.flags);
  const flag = word.startsWith("--")
    ? flags.find((one) => one.name === name || one.aliases?.includes(name) || `no-${one.name}` === name)
    : flags.find((one) => one.char === name);
  return { flag, value };
}

function flagWords(command: CommandMeta, flagValues: FlagValues): Candidate[] {
  const remaining = Object.values(command.flags).filter(
    (flag) =>
      flag.hidden !== true &&
      (!(flag.name in flagValues) || (flag.type === "option" && flag.multiple === true)),
  );
  const words: Candidate[] = [];
  for (const flag of remaining) {
    const about = flag.summary;
    words.push({ value: `--${flag.name}`, about });
    if (flag.type === "boolean" && flag.allowNo)
      words.push({ value: `--no-${flag.name}`, about: `Not: ${about}` });
  }
  return [...words, { value: "--help", about: "Show help." }];
}

function flagValueTarget(flag: FlagMeta, prefix: string, flags: FlagValues): CompletionTarget {
  if (flag.type !== "option") return NOTHING;
  const { options } = flag;
  if (options !== undefined) return wordsTarget(options.map((option) => ({ value: `${prefix}${option}` })));
  const shown = [flag.helpValue ?? []].flat().join(" ");
  const nameKind = FLAG_KINDS[`${flag.name} ${shown}`];
  if (nameKind !== undefined) return { kind: "names", of: nameKind, prefix, flags };
  if (/\bFILE\b/.test(shown)) return { kind: "files" };
  return /\b(?:FOLDER|DIR)\b/.test(shown) ? { kind: "folders" } : NOTHING;
}

/** The words of a simple command as a shell sees them; behind a space the last one is empty. */
export function wordsOf(line: string): string[] {
  const words: string[] = [];
  const word = /(?:[^\s"'\\]|\\.?|"(?:[^"\\]|\\.)*(?:"|$)|'[^']*(?:'|$))+|\s+$/gsy;
  for (let at = 0; at < line.length; at = word.lastIndex) {
    at += /^\s*(?=\S)/.exec(line.slice(at))?.[0].length ?? 0;
    word.lastIndex = at;
    const [found = ""] = word.exec(line) ?? [];
    if (found === "") break;
    words.push(found.trim() === "" ? "" : found);
  }
  return words;
}

/** A word as the program would get it, but for variables and commands in it. */
export function unquoted(word: string): string {
  const text = word.replaceAll(
    /'([^']*)'?|"((?:[^"\\]|\\.)*)"?|\\(.)|\\$/gs,
    (_, single: string | undefined, double: string | undefined, one: string | undefined) =>
      single ?? double?.replaceAll(/\\(["\\$`])/g, "$1") ?? one ?? "",
  );
  return word.startsWith("~/") ? `${homedir()}${text.slice(1)}` : text;
}
