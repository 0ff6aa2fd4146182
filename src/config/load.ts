import { readFileSync, statSync } from "node:fs";
import { basename, resolve } from "node:path";
import { EvregError } from "../domain/error.ts";
import { nearest } from "../domain/words/nearest.ts";
import { type Config, CONFIG_FILE_ENV, CONFIG_KEYS, type ConfigKey, KEY_BY_PATH } from "./keys.ts";
import { findFile, GENERIC_NAME, loadNamedFile } from "./file.ts";
import type { ConfigValue } from "./value-kinds.ts";
import { type Found, isLoopbackHost, type ConfigProblem, SourceValues } from "./values.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface LoadOptions {
  /** Flags by their names on the command line; those that set no key are ignored. */
  readonly flags?: object;
  readonly env: Environment;
  /** Where relative paths of flags and variables start, and where a file is looked for. */
  readonly cwd: string;
  /** What `--config` names. */
  readonly configFile?: string | undefined;
}

export interface LoadedConfig {
  readonly config: Config;
  /** The file that was read, if there was one. */
  readonly file: string | undefined;
  /** Where each key that is not at its default was found. */
  readonly places: ReadonlyMap<string, Found>;
  /** Where `remote.url` was found, if that is in a file that nobody named. */
  readonly unnamedUrlPlace: string | undefined;
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
  const variables = readEnvironment(env, cwd);
  const systemd = readStateDirectory(env, cwd);
  const values = defaultValues(cwd);
  const folder = [flags, variables, systemd].find(({ found }) => found.has("data"))?.found.get("data")?.value;
  const data = String(folder ?? values.get("data"));
  const named = options.configFile ?? text(env, CONFIG_FILE_ENV);
  const file = await (named === undefined ? findFile(cwd, data) : loadNamedFile(resolve(cwd, named)));
  const sources = [flags, variables, ...(file === undefined ? [] : [file.keys]), systemd];
  const byKey = new Map(sources.toReversed().flatMap((source) => Array.from(source.found)));
  for (const [path, { value }] of byKey) values.set(path, value);

  const problems = sources.flatMap((source) => source.problems);
  problems.push(...applyRules(values, byKey));
  if (problems.length > 0) throw problemsError(problems, named === undefined ? file?.path : undefined);

  const url = byKey.get("remote.url");
  return {
    config: buildConfig(values),
    places: byKey,
    warnings: warningsFor(file?.path, byKey),
    file: file?.path,
    unnamedUrlPlace: named === undefined && url?.source === "file" ? url.place : undefined,
  };
}

function readFlags(flags: object, cwd: string): SourceValues {
  const result = new SourceValues("flag", cwd);
  for (const key of CONFIG_KEYS) {
    const value = key.flag === undefined ? undefined : (flags as Record<string, unknown>)[key.flag];
    if (value !== undefined) result.add(key, value, `--${key.flag}`);
  }
  return result;
}

const PREFIX = "EVREG_";
const OF_KEYS = CONFIG_KEYS.flatMap(({ env, secret }) => (secret === true ? [env, `${env}_FILE`] : [env]));
/** The variables that mean something, without their prefix; the last five are the command line framework's. */
const KNOWN = new Set([
  ...[CONFIG_FILE_ENV, ...OF_KEYS].map((name) => name.slice(PREFIX.length)),
  "DEBUG",
  "DISABLE_THEME",
  "BINPATH",
  "CACHE_DIR",
  "CONFIG_DIR",
]);

/** Kubernetes puts these into every container beside a service named `evreg`. */
const KUBERNETES_LINK = /^EVREG_(?:\w+_)?(?:SERVICE_(?:HOST|PORT)|PORT_\d+_(?:TCP|UDP|SCTP))(?:_\w+)?$/;
const KUBERNETES_ADDRESS = /^(?:tcp|udp|sctp):\/\//;

/** Reads every `EVREG_*` variable. One that means nothing is a mistake; one without a value counts as not set. */
export function readEnvironment(env: Environment, cwd: string): SourceValues {
  const values = new SourceValues("environment", cwd);
  for (const key of CONFIG_KEYS) readKey(values, key, env, cwd);
  for (const [name, value = ""] of Object.entries(env)) {
    const word = name.slice(PREFIX.length);
    if (!name.startsWith(PREFIX) || KNOWN.has(word) || isFromKubernetes(name, value)) continue;
    const meant = nearest(word, KNOWN);
    const advice =
      meant === undefined
        ? "unset it, or see config.example.yaml for those there are"
        : `did you mean ${PREFIX}${meant}?`;
    values.refuse(name, name, `this variable means nothing to evreg; ${advice}`);
  }
  return values;
}

function readKey(into: SourceValues, key: ConfigKey, env: Environment, cwd: string): void {
  const variables = [key.env, ...(key.envAlias === undefined ? [] : [key.envAlias])].flatMap((place) => {
    const value = text(env, place);
    return value === undefined || isFromKubernetes(place, value) ? [] : { place, value };
  });
  const file = `${key.env}_FILE`;
  const path = key.secret === true ? text(env, file) : undefined;
  if (path !== undefined) {
    const subject = `the file ${resolve(cwd, path)} that should hold ${key.path}`;
    try {
      const value = readFileSync(resolve(cwd, path), "utf8").trim();
      if (value === "") return into.refuse(key.path, file, `${subject} is empty`);
      variables.push({ place: file, value });
    } catch (error) {
      const { code = "unreadable" } = error as NodeJS.ErrnoException;
      return into.refuse(key.path, file, `${subject} cannot be read (${code})`);
    }
  }
  const [first, second] = variables;
  if (first === undefined) return;
  if (second !== undefined && second.value !== first.value) {
    const message = `${first.place} and ${second.place} both set ${key.path}, to different values; unset one of them`;
    return into.refuse(key.path, second.place, message);
  }
  into.add(key, first.value, first.place);
}

function isFromKubernetes(name: string, value: string): boolean {
  return KUBERNETES_LINK.test(name) || (/^EVREG_(?:\w+_)?PORT$/.test(name) && KUBERNETES_ADDRESS.test(value));
}

function text(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}

/** The folder that systemd made for the service: a default that goes before the built-in one. */
function readStateDirectory(env: Environment, cwd: string): SourceValues {
  const result = new SourceValues("environment", cwd);
  const [folder = ""] = (env["STATE_DIRECTORY"] ?? "").split(":");
  if (folder !== "") result.add(KEY_BY_PATH.get("data")!, folder, "STATE_DIRECTORY");
  return result;
}

/** @param foundFile that nobody named */
function problemsError(problems: readonly ConfigProblem[], foundFile = ""): EvregError {
  const lines = problems.map(({ place, message }) => `${place}: ${message}`);
  if (basename(foundFile) === GENERIC_NAME && problems.some(({ place }) => place.startsWith(foundFile))) {
    lines.push(
      `If ${foundFile} is another program's, name evreg's own file with --config or ${CONFIG_FILE_ENV}.`,
    );
  }
  const [only = ""] = lines;
  const message = lines.length === 1 ? only : `The configuration has mistakes:\n  ${lines.join("\n  ")}`;
  return new EvregError("usage", message, { problems });
}

/** The default of every key that has one. */
function defaultValues(cwd: string): Map<string, ConfigValue> {
  const values = new Map<string, ConfigValue>([["data", resolve(cwd, ".evreg")]]);
  for (const key of CONFIG_KEYS) {
    const value = key.kind.read(key.default);
    if (value !== undefined) values.set(key.path, value);
  }
  return values;
}

/** All defaults as a whole configuration, for a program or a test that has no other source. */
export function defaultConfig(cwd: string): Config {
  return buildConfig(defaultValues(cwd));
}

/** Nests the keys in their sections, and freezes the result at every level. */
function buildConfig(values: ReadonlyMap<string, ConfigValue>): Config {
  const config: Record<string, unknown> = {};
  for (const { path, section, name } of CONFIG_KEYS) {
    const holder = section === "" ? config : ((config[section] ??= {}) as Record<string, unknown>);
    const value = values.get(path);
    if (value !== undefined) holder[name] = Object.freeze(value);
  }
  for (const section of Object.values(config)) Object.freeze(section);
  // Every key of the table is checked to its type before it gets here, and the table's test holds it to `Config`.
  return Object.freeze(config) as unknown as Config;
}

/** What a key is nothing without, and why. */
const NEEDED = [
  ["tls.cert", "tls.key", "https takes a certificate and its key"],
  ["tls.key", "tls.cert", "https takes a certificate and its key"],
  [
    "encryption.previousKey",
    "encryption.key",
    "it is for changing the key; set EVREG_ENCRYPTION_KEY to the new one",
  ],
] as const;

type ConfigValues = Map<string, ConfigValue>;
type Places = ReadonlyMap<string, Found>;

/**
 * What must hold between keys. Changes `values` where one key decides about another.
 * @returns the mistakes, in the order of the keys
 */
function applyRules(values: ConfigValues, places: Places): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  /** @param path of a key that is not at its default */
  const refuse = (path: string, message: string): void => {
    problems.push({ name: path, place: places.get(path)!.place, message: `${path} ${message}` });
  };
  const host = String(values.get("host"));
  if (values.get("auth.mode") === "off" && !isLoopbackHost(host)) {
    refuse(
      "auth.mode",
      `off is only for a loopback host such as 127.0.0.1, not ${host}: anybody who reaches it could do anything`,
    );
  }
  for (const [path, other, why] of NEEDED) {
    if (values.has(path) && !values.has(other)) refuse(path, `needs ${other} beside it: ${why}`);
  }
  // What a file says of a token is for that file's server; `--url` or `EVREG_URL` naming another must not hand it over.
  const isFromFile = (path: string): boolean => places.get(path)?.source === "file";
  if (places.has("remote.url") && !isFromFile("remote.url")) {
    if (isFromFile("remote.token")) values.delete("remote.token");
    if (isFromFile("remote.allowInsecureToken")) values.set("remote.allowInsecureToken", false);
  }
  return problems;
}

/** Of secrets in a file that others may read. */
function warningsFor(file: string | undefined, places: Places): string[] {
  const secrets = CONFIG_KEYS.filter(({ path, secret }) => secret && places.get(path)?.source === "file");
  if (file === undefined || secrets.length === 0 || process.platform === "win32") return [];
  if ((statSync(file).mode & 0o077) === 0) return [];
  const names = secrets.map(({ path }) => path).join(" and ");
  return [`${file} holds ${names} and others on this machine may read it; run: chmod 600 ${file}`];
}
