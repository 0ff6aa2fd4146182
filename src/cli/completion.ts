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

/**
 * What can stand where the cursor is. Where that is nothing, the shell completes files.
 * @param words those behind the program's name up to the cursor; the last one is being typed and may be empty
 */
export function completionAt(words: readonly string[], all: Commands): readonly Candidate[] {
  const typed = words.at(-1) ?? "";
  // bash makes three words of --order=asc.
  const before = words.slice(words[0] === "help" ? 1 : 0, -1).filter((word) => word !== "=");
  const commands = all.commands.filter(({ hidden }) => !hidden);
  if (before.length === 0) return typed.startsWith("-") ? PROGRAM_FLAGS : firstWords(commands, all);
  const [topic = "", verb] = before;
  const verbs = verbsOf(topic, commands);
  if (verbs.length > 0 && verb === undefined && !typed.startsWith("-")) return verbs;
  const named = commands.find(({ id }) => id === `${topic}:${verb}`);
  const command = named ?? commands.find(({ id }) => id === topic);
  if (command === undefined) return [];
  return candidatesOf(command, before.slice(named === undefined ? 1 : 2), typed.startsWith("-"));
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

/** @param before the words between the command's own and the one that is typed, which is a flag or not */
function candidatesOf(
  command: CommandMeta,
  before: readonly string[],
  isFlag: boolean,
): readonly Candidate[] {
  const present = new Set<string>();
  let waiting: FlagMeta | undefined;
  let typedArgs = 0;
  for (const word of before) {
    const flag = waiting === undefined ? flagOf(word, command) : undefined;
    if (waiting === undefined && !word.startsWith("-")) typedArgs += 1;
    if (flag !== undefined) present.add(flag.name);
    waiting = flag?.type === "option" && !word.includes("=") ? flag : undefined;
  }
  if (waiting?.type === "option") return valuesOf(waiting.options);
  const args = Object.values(command.args);
  const arg = args[typedArgs] ?? args.findLast(({ multiple }) => multiple === true);
  return isFlag || arg === undefined ? flagWords(command, present) : valuesOf(arg.options);
}

function flagOf(word: string, command: CommandMeta): FlagMeta | undefined {
  const [, name = ""] = /^--?([^=]+)/.exec(word) ?? [];
  const flags = Object.values(command.flags);
  return word.startsWith("--")
    ? flags.find((one) => one.name === name || one.aliases?.includes(name) || `no-${one.name}` === name)
    : flags.find((one) => one.char === name);
}

function valuesOf(options: readonly string[] = []): readonly Candidate[] {
  return options.map((value) => ({ value }));
}

function flagWords(command: CommandMeta, present: ReadonlySet<string>): Candidate[] {
  const words: Candidate[] = [];
  for (const flag of Object.values(command.flags)) {
    const isRepeatable = flag.type === "option" && flag.multiple === true;
    if (flag.hidden === true || (present.has(flag.name) && !isRepeatable)) continue;
    const about = flag.summary;
    words.push({ value: `--${flag.name}`, about });
    if (flag.type === "boolean" && flag.allowNo)
      words.push({ value: `--no-${flag.name}`, about: `Not: ${about}` });
  }
  return [...words, { value: "--help", about: "Show help." }];
}
