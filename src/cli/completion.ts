import type { Command } from "@oclif/core";

/** What completion looks at of oclif's `Config`. */
interface Commands {
  readonly commands: readonly CommandMeta[];
  readonly topics: readonly { readonly name: string; readonly description?: string | undefined }[];
}

type CommandMeta = Pick<Command.Loadable, "id" | "args" | "flags" | "hidden" | "summary">;
type FlagMeta = CommandMeta["flags"][string];

interface Candidate {
  readonly value: string;
  readonly about?: string | undefined;
}

/** What can stand where the cursor is: one of some words, or what the shell knows. */
export type CompletionTarget = readonly Candidate[] | "files" | "folders";

/** Arguments that are files, by command and name. */
const FILE_ARGUMENTS = new Set(["config:check.file", "import.file", "restore.file", "backup.file"]);

/** @param words those behind the program's name up to the cursor; the last one is being typed and may be empty */
export function completionAt(words: readonly string[], all: Commands): CompletionTarget {
  const typed = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const commands = all.commands.filter(({ hidden }) => !hidden);
  if (before[0] === "help") {
    const [, topic, ...more] = before;
    if (topic === undefined) return firstWords(commands, all);
    return more.length === 0 ? verbsOf(topic, commands) : [];
  }
  if (before.length === 0) return typed.startsWith("-") ? PROGRAM_FLAGS : firstWords(commands, all);
  const [topic = "", verb] = before;
  const verbs = verbsOf(topic, commands);
  if (verbs.length > 0 && verb === undefined && !typed.startsWith("-")) return verbs;
  const named = commands.find(({ id }) => id === `${topic}:${verb}`);
  const command = named ?? commands.find(({ id }) => id === topic);
  if (command === undefined) return [];
  return commandTarget(command, before.slice(named === undefined ? 1 : 2), typed);
}

const PROGRAM_FLAGS: readonly Candidate[] = [{ value: "--help" }, { value: "--version" }];

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
  const given = new Set<string>();
  let waiting: FlagMeta | undefined;
  let onlyArguments = false;
  let typedArgs = 0;
  for (const word of before) {
    if (waiting !== undefined) waiting = undefined;
    else if (onlyArguments || !/^-./.test(word)) typedArgs += 1;
    else if (word === "--") onlyArguments = true;
    else {
      const { flag, hasValue } = flagOf(word, command);
      if (flag === undefined) continue;
      given.add(flag.name);
      if (flag.type === "option" && !hasValue) waiting = flag;
    }
  }
  if (waiting !== undefined) return flagValues(waiting, "");
  if (!onlyArguments && typed.startsWith("-")) {
    const { flag, hasValue } = flagOf(typed, command);
    if (!hasValue) return flagWords(command, given);
    return flag === undefined ? [] : flagValues(flag, typed.slice(0, typed.indexOf("=") + 1));
  }
  const args = Object.entries(command.args);
  const last = args.at(-1);
  const [name, arg] = args[typedArgs] ?? (last?.[1].multiple === true ? last : []);
  if (name === undefined) return onlyArguments ? [] : flagWords(command, given);
  if (FILE_ARGUMENTS.has(`${command.id}.${name}`)) return "files";
  return (arg?.options ?? []).map((value) => ({ value }));
}

function flagOf(word: string, command: CommandMeta): { flag: FlagMeta | undefined; hasValue: boolean } {
  const [, name = "", value] = /^--?([^=]*)(=.*)?$/s.exec(word) ?? [];
  const flags = Object.values(command.flags);
  const flag = word.startsWith("--")
    ? flags.find((one) => one.name === name || one.aliases?.includes(name) || `no-${one.name}` === name)
    : flags.find((one) => one.char === name);
  return { flag, hasValue: value !== undefined };
}

function flagWords(command: CommandMeta, given: ReadonlySet<string>): Candidate[] {
  const words: Candidate[] = [];
  for (const flag of Object.values(command.flags)) {
    const isRepeatable = flag.type === "option" && flag.multiple === true;
    if (flag.hidden === true || (given.has(flag.name) && !isRepeatable)) continue;
    const about = flag.summary;
    words.push({ value: `--${flag.name}`, about });
    if (flag.type === "boolean" && flag.allowNo)
      words.push({ value: `--no-${flag.name}`, about: `Not: ${about}` });
  }
  return [...words, { value: "--help", about: "Show help." }];
}

/** @param prefix what the word begins with before the value, such as `--order=` */
function flagValues(flag: FlagMeta, prefix: string): CompletionTarget {
  if (flag.type !== "option") return [];
  const { options } = flag;
  if (options !== undefined) return options.map((option) => ({ value: `${prefix}${option}` }));
  const shown = [flag.helpValue ?? []].flat().join(" ");
  if (/\bFILE\b/.test(shown)) return "files";
  return /\b(?:FOLDER|DIR)\b/.test(shown) ? "folders" : [];
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
