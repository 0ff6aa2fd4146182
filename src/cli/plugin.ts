import type { Command, Interfaces } from "@oclif/core";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Load a command each, by its id. */
export type CommandLoaders = Readonly<Record<string, () => Promise<Command.Class>>>;

/** What the package's folder says of its commands. */
export interface PackageFiles {
  readonly pjson: Interfaces.PJSON;
  readonly manifest: Interfaces.Manifest;
}

/** @param root the folder of the package.json */
export async function installedPlugin(root: string, loaders: CommandLoaders): Promise<Interfaces.Plugin> {
  const read = async (name: string) => JSON.parse(await readFile(join(root, name), "utf8")) as unknown;
  const [pjson, manifest] = await Promise.all([read("package.json"), read("oclif.manifest.json")]);
  return pluginOf({ pjson, manifest } as PackageFiles, loaders, root);
}

/** The commands as oclif wants them. oclif's own plugin would load all of them to run one. */
export function pluginOf(
  { pjson, manifest }: PackageFiles,
  loaders: CommandLoaders,
  root: string,
): Interfaces.Plugin {
  const findCommand = async (id: string): Promise<Command.Class> => {
    const command = await loaders[id]?.();
    if (command === undefined)
      throw new Error(`the command ${id} is in the manifest, but not in the program`);
    command.id = id;
    command.plugin = plugin;
    return command;
  };
  const plugin: Interfaces.Plugin = {
    _base: "",
    alias: pjson.name,
    name: pjson.name,
    version: pjson.version,
    type: "core",
    moduleType: "module",
    pjson,
    root,
    options: { root, isRoot: true },
    isRoot: true,
    valid: true,
    hasManifest: true,
    commandsDir: undefined,
    commandIDs: Object.keys(manifest.commands),
    commands: Object.values(manifest.commands)
      .map((command) =>
        Object.assign(command, { usage: usageOf(command), load: () => findCommand(command.id) }),
      )
      // Commands are in the order of character codes: to compare by a language, Node first loads 10 ms' worth of its rules.
      .toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    hooks: {},
    topics: Object.entries(pjson.oclif.topics ?? {}).map(([name, topic]) => Object.assign(topic, { name })),
    findCommand,
    load: () => Promise.resolve(),
  };
  return plugin;
}

/**
 * How a command is typed, such as `<%= command.id %> NAME --application NAME [--mode MODE]`, where it does not say so itself:
 * its arguments, and its flags but for those that all commands have.
 */
function usageOf({ usage, args, flags }: Command.Cached): string | string[] {
  if (usage !== undefined) return usage;
  const words = Object.values(args).map(({ name, required, multiple }) =>
    optional(`${name.toUpperCase()}${multiple === true ? "..." : ""}`, required !== true),
  );
  for (const flag of Object.values(flags)) {
    if (flag.helpGroup === "GLOBAL" || flag.hidden === true) continue;
    const isNegatable = flag.type === "boolean" && flag.allowNo;
    const name = `--${isNegatable ? "[no-]" : ""}${flag.name}`;
    const value = flag.type === "option" ? [flag.helpValue ?? "VALUE"].flat() : [];
    const repeated = flag.type === "option" && flag.multiple === true ? "..." : "";
    words.push(optional([name, ...value].join(" "), flag.required !== true) + repeated);
  }
  return ["<%= command.id %>", ...words].join(" ");
}

function optional(word: string, isOptional: boolean): string {
  return isOptional ? `[${word}]` : word;
}
