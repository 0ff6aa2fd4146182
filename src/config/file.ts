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
  /** True for a `config.yaml` beside the data folder, whose name another program may use as well. */
  readonly generic: boolean;
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
export async function loadText(path: string, text: string): Promise<ConfigFile> {
  return { path, keys: await keysIn(path, text), generic: false };
}

/** YAML takes its time to load, and most commands have no file to read. */
async function keysIn(path: string, text: string): Promise<SourceValues> {
  return (await import("./file-keys.ts")).readFileKeys(path, text);
}

const OTHER_DATA = "Run evreg as the user it belongs to, or name another folder with --data.";
const ELSEWHERE = " Name another with --config, or start evreg in another folder.";

/**
 * Looks in the working directory for `evreg.config.yaml` or `.evregrc`, then for `config.yaml` in the data folder, then
 * beside it. The first found is the only one read; folders further up are not looked at.
 */
export async function findFile(cwd: string, data: string): Promise<ConfigFile | undefined> {
  const places = [
    { folder: cwd, names: OWN_NAMES, remedy: "Start evreg in another folder." },
    { folder: data, names: GENERIC_NAMES, remedy: OTHER_DATA },
    { folder: dirname(data), names: GENERIC_NAMES, remedy: OTHER_DATA },
  ];
  for (const { folder, names, remedy } of places) {
    refuseUnreadable(folder, names, remedy);
    try {
      const found = await search(folder, names);
      if (found === null) continue;
      const { filepath: path, config } = found;
      refuseForeign(path);
      return { path, keys: config ?? new SourceValues("file", folder), generic: names === GENERIC_NAMES };
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
function refuseUnreadable(folder: string, names: readonly string[], remedy: string): void {
  // A file at its place is refused as a data folder.
  if (isDenied(folder, constants.X_OK) && !isFile(folder)) {
    throw new EvregError("usage", `The folder ${folder} may not be looked into (EACCES). ${remedy}`);
  }
  const path = names.map((name) => join(folder, name)).find((one) => isDenied(one, constants.R_OK));
  if (path === undefined) return;
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

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
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
  const message = `The configuration file ${path} ${why}.${remedy}`;
  return new EvregError("usage", message, {}, { cause: error });
}
