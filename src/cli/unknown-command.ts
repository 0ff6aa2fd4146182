import type { Command } from "@oclif/core";
import { nearest } from "../config/nearest.ts";
import type { EvregError } from "../domain/error.ts";
import { withoutUserInfo } from "../domain/user-info.ts";
import { usage } from "./usage.ts";

/** As much of oclif's `Config` as tells which commands there are. */
interface Commands {
  readonly commands: readonly Pick<Command.Loadable, "id" | "hidden">[];
  findCommand(id: string): Pick<Command.Loadable, "args" | "flags"> | undefined;
}

/** For words that are no command: what was probably meant, else what there is. */
export function unknownCommand(id: string, all: Commands): EvregError {
  // A password may stand in an address that was typed in a wrong place; oclif has made its colons those of a command.
  const told = withoutUserInfo(id);
  const extra = extraArguments(told, all);
  if (extra !== undefined) return extra;
  const { commands } = all;
  const commandIDs = commands.filter(({ hidden }) => !hidden).map((command) => command.id);
  const words = told.split(":");
  const [topic = "", ...rest] = words;
  const verbs = commandIDs
    .filter((other) => other.startsWith(`${topic}:`))
    .map((other) => other.slice(topic.length + 1));
  if (rest.length > 0 && verbs.length > 0) {
    const verb = nearest(rest[0] ?? "", verbs);
    const advice =
      verb === undefined ? `${topic} has: ${verbs.join(", ")}.` : meantCommand(`${topic} ${verb}`);
    return usage(`There is no command ${JSON.stringify(words.join(" "))}; ${advice}`);
  }
  const topics = [...new Set(commandIDs.map((other) => other.split(":")[0] ?? ""))];
  const known = nearest(topic, topics);
  const whole = [known, ...rest];
  const advice =
    known === undefined
      ? `there are: ${topics.join(", ")}.`
      : meantCommand(commandIDs.includes(whole.join(":")) ? whole.join(" ") : known);
  return usage(`There is no command ${JSON.stringify(topic)}; ${advice}`);
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
  return usage(`Too many arguments: ${words}. evreg ${name} takes none${files}`);
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
  return usage(
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
