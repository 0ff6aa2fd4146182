import { resolve } from "node:path";
import { EvregError } from "../domain/error.ts";
import type { Config } from "./config.ts";
import { buildConfig, defaultDataFolder, defaultValues } from "./defaults.ts";
import { readEnvironment, type Environment } from "./environment.ts";
import { findings, note, type Findings, type Found, type Problem } from "./found.ts";
import { applyRules, warningsFor } from "./rules.ts";
import { CONFIG_FILE_ENV, CONFIG_KEYS, KEY_BY_PATH } from "./schema.ts";
import type { ConfigFile } from "./file-keys.ts";

/** The flags that set a key, under their names on the command line. Others in the same object are not looked at. */
export interface ConfigFlags {
  readonly host?: string | undefined;
  readonly port?: number | string | undefined;
  readonly data?: string | undefined;
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly "log-level"?: string | undefined;
  readonly "log-format"?: string | undefined;
}

export interface LoadOptions {
  readonly flags?: ConfigFlags;
  readonly env: Environment;
  /** Where relative paths of flags and variables start, and where a file is looked for. */
  readonly cwd: string;
  /** What `--config` names. */
  readonly configFile?: string | undefined;
  /** Whether `configFile` was named otherwise, and no flag is to be blamed for it. */
  readonly isArgument?: boolean;
  /** The file's content, where it is none of a file's, with a name for it in messages; no file is read then. */
  readonly configText?: { readonly name: string; readonly text: string } | undefined;
}

export interface LoadedConfig {
  readonly config: Config;
  /** The file that was read, if there was one. */
  readonly file?: string;
  /** Where each key that is not at its default was found. */
  readonly places: ReadonlyMap<string, Found>;
  /** What `EVREG_CONTEXT` names. */
  readonly contextName?: string;
  /** Where `remote.url` was found when only a file says it that nobody named. */
  readonly unnamedUrlPlace?: string;
  /** The same of `data`. */
  readonly unnamedDataPlace?: string;
  /** Sentences for a person, on stderr. */
  readonly warnings: readonly string[];
}

/**
 * Flags, then `EVREG_*`, then a file, then defaults; checked, and frozen.
 * @throws EvregError `usage`; the message lists every mistake with its place
 */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const { env, cwd } = options;
  const flags = readFlags(options.flags ?? {}, cwd);
  const environment = readEnvironment(env, cwd);
  const folder = dataFolder([flags, environment]) ?? defaultDataFolder(env, cwd);
  const file = await readFile(options, environment.configFile, folder);
  const sources = [flags, environment, file?.keys ?? findings()];

  const found = new Map<string, Found>();
  const values = defaultValues();
  for (const source of sources.toReversed()) {
    for (const [path, item] of source.found) {
      found.set(path, item);
      const isFile = item.key.type.kind === "file";
      values.set(path, isFile ? resolve(item.base, String(item.value)) : item.value);
    }
  }
  values.set("data", dataFolder(sources) ?? folder);
  const key = KEY_BY_PATH.get("data");
  if (key !== undefined && !found.has("data") && (env["STATE_DIRECTORY"] ?? "") !== "") {
    found.set("data", { key, value: folder, source: "environment", place: "STATE_DIRECTORY", base: cwd });
  }

  const problems = sources.flatMap((source) => source.problems);
  problems.push(...applyRules(values, found));
  if (problems.length > 0) throw mistakes(problems, file?.file);

  const unnamedPlace = (path: string): string | undefined => {
    const item = found.get(path);
    return file?.named === false && item?.source === "file" ? item.place : undefined;
  };
  const [unnamedUrlPlace, unnamedDataPlace] = [unnamedPlace("remote.url"), unnamedPlace("data")];
  return {
    config: buildConfig(values),
    places: found,
    warnings: warningsFor(values, found, options.configText === undefined ? file?.file.path : undefined),
    ...(file === undefined ? {} : { file: file.file.path }),
    ...(unnamedUrlPlace === undefined ? {} : { unnamedUrlPlace }),
    ...(unnamedDataPlace === undefined ? {} : { unnamedDataPlace }),
    ...(environment.contextName === undefined ? {} : { contextName: environment.contextName }),
  };
}

function readFlags(flags: ConfigFlags, cwd: string): Findings {
  const result = findings();
  for (const key of CONFIG_KEYS) {
    const value = key.flag === undefined ? undefined : (flags as Record<string, unknown>)[key.flag];
    if (value === undefined) continue;
    note(result, key, value, { source: "flag", place: `--${key.flag}`, base: cwd });
  }
  return result;
}

/** The first source's that names one, as an absolute path. */
function dataFolder(sources: readonly Findings[]): string | undefined {
  for (const { found } of sources) {
    const data = found.get("data");
    if (data !== undefined) return resolve(data.base, String(data.value));
  }
  return undefined;
}

async function readFile(
  { configFile, configText, cwd, isArgument = false }: LoadOptions,
  fromEnvironment: string | undefined,
  folder: string,
): Promise<{ file: ConfigFile; named: boolean; keys: Findings } | undefined> {
  // Loaded here, as most commands have no file to read and YAML takes its time to load.
  const { findFile, loadNamedFile, loadText } = await import("./file-search.ts");
  const named = configFile ?? fromEnvironment;
  const flag = isArgument ? undefined : "--config";
  const place = configFile === undefined ? CONFIG_FILE_ENV : flag;
  let file: ConfigFile | undefined;
  if (configText !== undefined) file = await loadText(configText.name, configText.text);
  else if (named !== undefined) file = await loadNamedFile(named, place, cwd);
  else file = await findFile(cwd, folder);
  if (file === undefined) return undefined;
  const { readFileKeys } = await import("./file-keys.ts");
  return { file, named: named !== undefined, keys: readFileKeys(file) };
}

function mistakes(problems: readonly Problem[], file: ConfigFile | undefined): EvregError {
  const lines = problems.map(({ place, message }) => `${place}: ${message}`);
  if (file?.generic === true && problems.some(({ place }) => place.startsWith(file.path))) {
    lines.push(
      `If ${file.path} is another program's, name evreg's own file with --config or ${CONFIG_FILE_ENV}.`,
    );
  }
  const [only = ""] = lines;
  const message = lines.length === 1 ? only : `The configuration has mistakes:\n  ${lines.join("\n  ")}`;
  return new EvregError("usage", message, { problems });
}
