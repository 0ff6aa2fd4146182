import { type Command, type Interfaces } from "@oclif/core";

/** What oclif would read from a package's folder. */
export interface Bundled {
  readonly pjson: Interfaces.PJSON;
  readonly manifest: Interfaces.Manifest;
  /** Loads the module of a command, by the command's id. */
  readonly load: Readonly<Record<string, () => Promise<{ readonly default: Command.Class }>>>;
}

/** The packages with commands as oclif wants them, the program's own first. */
export function pluginsOf(bundled: readonly Bundled[], root: string): Map<string, Interfaces.Plugin> {
  return new Map(bundled.map((one, at) => [one.pjson.name, pluginOf(one, root, at === 0)]));
}

function pluginOf({ pjson, manifest, load }: Bundled, root: string, isRoot: boolean): Interfaces.Plugin {
  const findCommand = async (id: string): Promise<Command.Class> => {
    const command = (await load[id]?.())?.default;
    if (command === undefined) throw new Error(`the command ${id} is not in this executable`);
    command.id = id;
    command.plugin = plugin;
    return command;
  };
  const commandIDs = Object.keys(manifest.commands);
  const plugin: Interfaces.Plugin = {
    _base: "",
    alias: pjson.name,
    name: pjson.name,
    version: pjson.version,
    type: "core",
    moduleType: "module",
    pjson,
    root,
    options: { root, isRoot },
    isRoot,
    valid: true,
    hasManifest: true,
    commandsDir: undefined,
    commandIDs,
    commands: Object.values(manifest.commands)
      .map((command) => Object.assign(command, { load: () => findCommand(command.id) }))
      .toSorted((a, b) => a.id.localeCompare(b.id)),
    hooks: {},
    topics: Object.entries(pjson.oclif.topics ?? {}).map(([name, topic]) => Object.assign(topic, { name })),
    findCommand,
    load: () => Promise.resolve(),
  };
  return plugin;
}
