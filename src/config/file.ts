import { accessSync, constants, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { EvregError } from "../domain/error.ts";
import { isOurs, othersMayWrite } from "../runtime/files.ts";
import type { YamlText } from "./yaml.ts";

/** A configuration file as read: nothing in it is checked yet beyond being YAML. */
export interface ConfigFile {
  /** Absolute. */
  readonly path: string;
  /** `undefined` for an empty file. */
  readonly parsed: (Pick<YamlText, "lines"> & { readonly document: YamlText["documents"][0] }) | undefined;
  /** True for a `config.yaml` beside the data folder, whose name another program may use as well. */
  readonly generic: boolean;
}

interface Explorer {
  search(from: string): Promise<Loaded | null>;
}
interface Loaded {
  readonly filepath: string;
  readonly config: ConfigFile["parsed"];
}

const EXTENSIONS = [".yaml", ".yml", ".json"];
const OWN_NAMES = [
  ...EXTENSIONS.map((extension) => `evreg.config${extension}`),
  ...["", ...EXTENSIONS].map((extension) => `.evregrc${extension}`),
];
const GENERIC_NAMES = ["config.yaml"];

/**
 * Reads a file that was named, by its absolute path.
 * @throws `usage` when it cannot be read or is not YAML
 */
export async function loadNamedFile(path: string): Promise<ConfigFile> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw unreadable(error, path, " Name another with --config or EVREG_CONFIG.");
  });
  return loadText(path, text);
}

/** @throws `usage` when the text is not YAML */
export async function loadText(name: string, text: string): Promise<ConfigFile> {
  return { path: name, parsed: text.trim() === "" ? undefined : await parse(name, text), generic: false };
}

const OTHER_DATA = "Run evreg as the user it belongs to, or name another folder with --data.";

/**
 * Looks in the working directory for `evreg.config.yaml` or `.evregrc`, then for `config.yaml` in the data folder, then
 * beside it. The first found is the only one read; folders further up are not looked at.
 */
export async function findFile(cwd: string, data: string): Promise<ConfigFile | undefined> {
  const places = [
    { folder: cwd, names: OWN_NAMES, generic: false, remedy: "Start evreg in another folder." },
    { folder: data, names: GENERIC_NAMES, generic: true, remedy: OTHER_DATA },
    { folder: dirname(data), names: GENERIC_NAMES, generic: true, remedy: OTHER_DATA },
  ];
  for (const { folder, names, generic, remedy } of places) {
    for (const name of names) refuseUnreadable(folder, name, remedy);
    try {
      const explorer = await explorerFor(names);
      const result = await explorer.search(folder);
      if (result === null) continue;
      refuseForeign(result.filepath);
      return { path: result.filepath, parsed: result.config, generic };
    } catch (error) {
      // A data folder below something that is a file: for the store to complain about.
      if ((error as NodeJS.ErrnoException).code === "ENOTDIR") continue;
      throw unreadable(error, folder, ELSEWHERE);
    }
  }
  return undefined;
}

/**
 * cosmiconfig's own class behind `cosmiconfig()`, which first looks in the working directory for `.config/config.js` and
 * its like and runs it. That cannot be switched off, and a configuration of evreg is data, never code.
 */
async function explorerFor(searchPlaces: readonly string[]): Promise<Explorer> {
  const { default: module } = (await import("cosmiconfig/dist/Explorer.js")) as unknown as {
    default: { Explorer: new (options: object) => Explorer };
  };
  return new module.Explorer({
    moduleName: "evreg",
    searchPlaces,
    searchStrategy: "none",
    ignoreEmptySearchPlaces: false,
    cache: false,
    transform: (result: unknown) => result,
    metaConfigFilePath: null,
    mergeImportArrays: false,
    mergeSearchPlaces: false,
    loaders: { ".yaml": parse, ".yml": parse, ".json": parse, noExt: parse },
  });
}

/** JSON is YAML too, so one reader gives places for both. As the value is wrapped, `$import` is not followed. */
async function parse(path: string, content: string): Promise<ConfigFile["parsed"]> {
  const { readYaml } = await import("./yaml.ts");
  const { documents, lines, faults } = readYaml(content);
  const [fault] = faults;
  if (fault === undefined) return { document: documents[0]!, lines };
  const { line, col, message } = fault;
  throw new EvregError("usage", `${path}:${line}:${col}: this is not the YAML evreg reads: ${message}`);
}

/** A search passes over what it may not read; a configuration that is there must not be ignored in silence. */
function refuseUnreadable(folder: string, name: string, remedy: string): void {
  const path = join(folder, name);
  if (!isDenied(path, constants.R_OK)) return;
  // Whether there is such a file is unknown then.
  if (isDenied(folder, constants.X_OK)) {
    throw new EvregError("usage", `The folder ${folder} may not be looked into (EACCES). ${remedy}`);
  }
  throw new EvregError("usage", `The configuration file ${path} cannot be read (EACCES).${ELSEWHERE}`);
}

function isDenied(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES";
  }
}

/** In a folder where others may write (`/tmp`), a file of somebody else's is not taken up unasked. */
function refuseForeign(path: string): void {
  const file = statSync(path);
  if (isOurs(file) || !othersMayWrite(statSync(dirname(path)))) return;
  throw new EvregError(
    "usage",
    `${path} belongs to another user (${file.uid}), in a folder where others may write. Name it with --config if it is meant.`,
  );
}

const ELSEWHERE = " Name another with --config, or start evreg in another folder.";

function unreadable(error: unknown, path: string, remedy: string): EvregError {
  if (error instanceof EvregError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? "unreadable";
  const why = code === "ENOENT" ? "does not exist" : `cannot be read (${code})`;
  const message = `The configuration file ${path} ${why}.${remedy}`;
  return new EvregError("usage", message, {}, { cause: error });
}
