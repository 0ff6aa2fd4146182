import { accessSync, constants, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { EvregError } from "../domain/error.ts";
import { isOurs, othersMayWrite } from "../runtime/files.ts";
import { SourceValues } from "./values.ts";

/** A configuration file, with each of its keys at its line and column; unknown ones are problems. */
export interface ConfigFile {
  /** Absolute. */
  readonly path: string;
  readonly keys: SourceValues;
}

const EXTENSIONS = [".yaml", ".yml", ".json"];
const OWN_NAMES = [
  ...EXTENSIONS.map((extension) => `evreg.config${extension}`),
  ...["", ...EXTENSIONS].map((extension) => `.evregrc${extension}`),
];
/** Another program may use it as well. */
export const GENERIC_NAME = "config.yaml";

/**
 * Reads a file that was named, by its absolute path.
 * @throws `usage` when it cannot be read or is not YAML
 */
export async function loadNamedFile(path: string): Promise<ConfigFile> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw unreadable(error, path, "Name another with --config or EVREG_CONFIG.");
  });
  return loadText(path, text);
}

/** @throws `usage` when the text is not YAML */
export async function loadText(path: string, text: string): Promise<ConfigFile> {
  return { path, keys: await keysIn(path, text) };
}

/** YAML takes its time to load, and most commands have no file to read. */
async function keysIn(path: string, text: string): Promise<SourceValues> {
  return (await import("./file-keys.ts")).readFileKeys(path, text);
}

const ELSEWHERE = "Run evreg as the user it belongs to, or name another with --config.";

/**
 * Looks in the working directory for `evreg.config.yaml` or `.evregrc`, then for `config.yaml` in the data folder, then
 * beside it. The first found is the only one read; folders further up are not looked at.
 */
export async function findFile(cwd: string, data: string): Promise<ConfigFile | undefined> {
  const places: readonly (readonly [folder: string, names: readonly string[]])[] = [
    [cwd, OWN_NAMES],
    [data, [GENERIC_NAME]],
    [dirname(data), [GENERIC_NAME]],
  ];
  for (const [folder, names] of places) {
    refuseUnreadable(folder, names);
    try {
      const found = await search(folder, names);
      if (found === null) continue;
      const { filepath: path, config } = found;
      refuseForeign(path);
      return { path, keys: config ?? new SourceValues("file", folder) };
    } catch (error) {
      // A data folder below something that is a file: for the store to complain about.
      if ((error as NodeJS.ErrnoException).code === "ENOTDIR") continue;
      throw unreadable(error, folder, ELSEWHERE);
    }
  }
  return undefined;
}

interface Explorer {
  search(from: string): Promise<{ readonly filepath: string; readonly config?: SourceValues } | null>;
}

/**
 * By cosmiconfig's own class behind `cosmiconfig()`, which first looks in the working directory for `.config/config.js` and
 * its like and runs it. That cannot be switched off, and a configuration of evreg is data, never code. JSON is YAML too, so
 * one reader is for both; and as what it answers is no plain object, `$import` is not followed.
 */
async function search(folder: string, names: readonly string[]): ReturnType<Explorer["search"]> {
  const { default: module } = (await import("cosmiconfig/dist/Explorer.js")) as unknown as {
    default: { Explorer: new (options: object) => Explorer };
  };
  return new module.Explorer({
    moduleName: "evreg",
    searchPlaces: names,
    searchStrategy: "none",
    ignoreEmptySearchPlaces: false,
    cache: false,
    transform: (result: unknown) => result,
    metaConfigFilePath: null,
    mergeImportArrays: false,
    mergeSearchPlaces: false,
    loaders: { default: keysIn },
  }).search(folder);
}

/** A search passes over what it may not read; a configuration that is there must not be ignored in silence. */
function refuseUnreadable(folder: string, names: readonly string[]): void {
  for (const path of names.map((name) => join(folder, name))) {
    try {
      accessSync(path, constants.R_OK);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EACCES") throw unreadable(error, path, ELSEWHERE);
    }
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

function unreadable(error: unknown, path: string, remedy: string): EvregError {
  if (error instanceof EvregError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? "unreadable";
  const why = code === "ENOENT" ? "does not exist" : `cannot be read (${code})`;
  const message = `The configuration file ${path} ${why}. ${remedy}`;
  return new EvregError("usage", message, {}, { cause: error });
}
