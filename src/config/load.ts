import { statSync } from "node:fs";
import { resolve } from "node:path";
import { EvregError } from "../domain/error.ts";
import { type Environment, readEnvironment } from "./environment.ts";
import { type Config, CONFIG_FILE_ENV, CONFIG_KEYS, KEY_BY_PATH } from "./schema.ts";
import {
  checkValue,
  type ConfigValue,
  noValues,
  type SourceValues,
  type Found,
  isLoopbackHost,
  addValue,
  type Problem,
} from "./values.ts";
import type { ConfigFile } from "./yaml.ts";

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
  readonly file: string | undefined;
  /** Where each key that is not at its default was found. */
  readonly places: ReadonlyMap<string, Found>;
  /** What `EVREG_CONTEXT` names. */
  readonly contextName: string | undefined;
  /** Where `remote.url` was found when it is in a file that nobody named. */
  readonly unnamedUrlPlace: string | undefined;
  /** The same of `data`. */
  readonly unnamedDataPlace: string | undefined;
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
  const sources = [flags, environment, file?.keys ?? noValues()];

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
  if (problems.length > 0) throw problemsError(problems, file?.file);

  const unnamedPlace = (path: string): string | undefined => {
    const item = found.get(path);
    return file?.named === false && item?.source === "file" ? item.place : undefined;
  };
  return {
    config: buildConfig(values),
    places: found,
    warnings: warningsFor(values, found, options.configText === undefined ? file?.file.path : undefined),
    file: file?.file.path,
    unnamedUrlPlace: unnamedPlace("remote.url"),
    unnamedDataPlace: unnamedPlace("data"),
    contextName: environment.contextName,
  };
}

function readFlags(flags: ConfigFlags, cwd: string): SourceValues {
  const result = noValues();
  for (const key of CONFIG_KEYS) {
    const value = key.flag === undefined ? undefined : (flags as Record<string, unknown>)[key.flag];
    if (value === undefined) continue;
    addValue(result, key, value, { source: "flag", place: `--${key.flag}`, base: cwd });
  }
  return result;
}

/** The first source's that names one, as an absolute path. */
function dataFolder(sources: readonly SourceValues[]): string | undefined {
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
): Promise<{ file: ConfigFile; named: boolean; keys: SourceValues } | undefined> {
  // Loaded here, as most commands have no file to read and YAML takes its time to load.
  const { findFile, loadNamedFile, loadText } = await import("./file.ts");
  const named = configFile ?? fromEnvironment;
  const flag = isArgument ? undefined : "--config";
  const place = configFile === undefined ? CONFIG_FILE_ENV : flag;
  let file: ConfigFile | undefined;
  if (configText !== undefined) file = await loadText(configText.name, configText.text);
  else if (named !== undefined) file = await loadNamedFile(named, place, cwd);
  else file = await findFile(cwd, folder);
  if (file === undefined) return undefined;
  const { readFileKeys } = await import("./yaml.ts");
  return { file, named: named !== undefined, keys: readFileKeys(file) };
}

function problemsError(problems: readonly Problem[], file: ConfigFile | undefined): EvregError {
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

const DATA_FOLDER = ".evreg";

/** The default of every key that has one. */
export function defaultValues(): Map<string, ConfigValue> {
  const values = new Map<string, ConfigValue>();
  for (const key of CONFIG_KEYS) {
    if (key.default === null) continue;
    const checked = checkValue(key, key.default);
    if ("value" in checked) values.set(key.path, checked.value);
  }
  return values;
}

/** Where data goes by default: the folder systemd made for the service, else `.evreg` in the working directory. */
export function defaultDataFolder(env: Environment, cwd: string): string {
  const [given] = (env["STATE_DIRECTORY"] ?? "").split(":");
  return resolve(cwd, given === undefined || given === "" ? DATA_FOLDER : given);
}

/** All defaults as a whole configuration, for a program or a test that has no other source. */
export function defaultConfig(cwd: string): Config {
  return buildConfig(defaultValues().set("data", defaultDataFolder({}, cwd)));
}

/** Nests dotted keys and freezes the result at every level. */
export function buildConfig(values: ReadonlyMap<string, ConfigValue>): Config {
  const config: Record<string, unknown> = {};
  for (const key of CONFIG_KEYS) {
    const [outer = "", inner] = key.path.split(".");
    const value = values.get(key.path);
    if (inner === undefined) {
      config[outer] = value;
      continue;
    }
    const section = (config[outer] ??= {}) as Record<string, unknown>;
    if (value !== undefined)
      section[inner] = Array.isArray(value) ? Object.freeze([...(value as string[])]) : value;
  }
  for (const section of Object.values(config)) Object.freeze(section);
  // Every key of the table is checked to its type before it gets here, and the table's test holds it to `Config`.
  return Object.freeze(config) as unknown as Config;
}

type Values = Map<string, ConfigValue>;
type Places = ReadonlyMap<string, Found>;

/**
 * What must hold between keys. Changes `values` where a default has to follow another key.
 * @returns the mistakes, in the order of the keys
 */
export function applyRules(values: Values, found: Places): Problem[] {
  const problems: Problem[] = [];
  const host = String(values.get("host"));
  if (values.get("auth.mode") === "off" && !isLoopbackHost(host)) {
    problems.push({
      name: "auth.mode",
      place: found.get("auth.mode")?.place ?? "defaults",
      message: `auth.mode off is only for a loopback host such as 127.0.0.1, not ${host}: anybody who reaches it could do anything`,
    });
  }
  const [cert, certKey] = [found.get("tls.cert"), found.get("tls.key")];
  if ((cert === undefined) !== (certKey === undefined)) {
    const given = (cert ?? certKey)!;
    const missing = cert === undefined ? "tls.cert" : "tls.key";
    problems.push({
      name: given.key.path,
      place: given.place,
      message: `${given.key.path} needs ${missing} beside it: https takes a certificate and its key`,
    });
  }
  const previousKey = found.get("encryption.previousKey");
  if (previousKey !== undefined && !values.has("encryption.key")) {
    problems.push({
      name: previousKey.key.path,
      place: previousKey.place,
      message:
        "encryption.previousKey is for changing the key, and there is no encryption.key to change to; set EVREG_ENCRYPTION_KEY to the new one",
    });
  }
  const inFlight = found.get("delivery.maxInFlightPerSubscription");
  const total = Number(values.get("delivery.maxInFlight"));
  const max = Math.max(1, total - 1);
  if (inFlight === undefined) {
    const own = Number(values.get("delivery.maxInFlightPerSubscription"));
    values.set("delivery.maxInFlightPerSubscription", Math.min(own, Math.max(1, Math.floor(total / 2))));
  } else if (Number(inFlight.value) > max) {
    problems.push({
      name: inFlight.key.path,
      place: inFlight.place,
      message: `${inFlight.key.path} must be at most ${max} with a delivery.maxInFlight of ${total}, so that one subscription cannot take every place`,
    });
  }
  dropForeignToken(values, found);
  return problems;
}

/** What starts all the same, but a person should know. Never holds a secret. */
export function warningsFor(values: Values, found: Places, file: string | undefined): string[] {
  const warnings: string[] = [];
  const secrets = CONFIG_KEYS.filter((key) => key.secret === true && found.get(key.path)?.source === "file");
  if (
    file !== undefined &&
    secrets.length > 0 &&
    process.platform !== "win32" &&
    (statSync(file).mode & 0o077) !== 0
  ) {
    warnings.push(
      `${file} holds ${secrets.map((key) => key.path).join(" and ")} and others on this machine may read it; run: chmod 600 ${file}`,
    );
  }
  const url = values.get("remote.url");
  if (typeof url === "string" && values.has("remote.token") && isUnencrypted(url)) {
    warnings.push(`The token goes to ${url} unencrypted; use an https: address.`);
  }
  return warnings;
}

/** A file's token is for that file's server; `--url` or `EVREG_URL` naming another must not hand it over. */
function dropForeignToken(values: Values, found: Places): void {
  const [url, token] = [found.get("remote.url"), found.get("remote.token")];
  if (token?.source === "file" && url !== undefined && url.source !== "file") values.delete("remote.token");
}

function isUnencrypted(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !isLoopbackHost(hostname.replace(/^\[|\]$/g, ""));
}
