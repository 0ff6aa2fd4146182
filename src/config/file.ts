import { statSync } from "node:fs";
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
  return await load(path).catch((error: unknown) => {
    throw unreadable(error, path, "Name another with --config or EVREG_CONFIG.");
  });
}

/** YAML takes its time to load, and most commands have no file to read. */
async function keysIn(path: string, text: string): Promise<SourceValues> {
  return (await import("./file-keys.ts")).readFileKeys(path, text);
}

/**
 * Looks in the working directory for `evreg.config.yaml` or `.evregrc`, then for `config.yaml` in the data folder, then
 * beside it. The first found is the only one read; folders further up are not looked at.
 */
export async function findFile(cwd: string, data: string): Promise<ConfigFile | undefined> {
  const places = [
    ...OWN_NAMES.map((name) => join(cwd, name)),
    join(data, GENERIC_NAME),
    join(dirname(data), GENERIC_NAME),
  ];
  for (const path of places) {
    try {
      const file = await load(path);
      refuseForeign(path);
      return file;
    } catch (error) {
      if (!NO_FILE.has((error as NodeJS.ErrnoException).code ?? "")) {
        throw unreadable(error, path, "Run evreg as the user it belongs to, or name another with --config.");
      }
    }
  }
  return undefined;
}

/** There is none, or a folder has its name, or the data folder is below something that is a file: for the store to complain about. */
const NO_FILE: ReadonlySet<string> = new Set(["ENOENT", "EISDIR", "ENOTDIR"]);

interface Explorer {
  load(path: string): Promise<{ readonly config?: SourceValues }>;
}

/**
 * By cosmiconfig's own class behind `cosmiconfig()`, which first looks in the working directory for `.config/config.js` and
 * its like and runs it. That cannot be switched off, and a configuration of evreg is data, never code. Place by place, as its
 * search passes over what it may not read, and a configuration that is there must not be ignored in silence. JSON is YAML too,
 * so one reader is for both; and as what it answers is no plain object, `$import` is not followed.
 */
async function load(path: string): Promise<ConfigFile> {
  const { default: module } = (await import("cosmiconfig/dist/Explorer.js")) as unknown as {
    default: { Explorer: new (options: object) => Explorer };
  };
  const explorer = new module.Explorer({
    searchPlaces: [],
    transform: (result: unknown) => result,
    loaders: { default: keysIn },
  });
  const { config: keys = new SourceValues("file", dirname(path)) } = await explorer.load(path);
  return { path, keys };
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
