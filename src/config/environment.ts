import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { CONFIG_FILE_ENV, CONFIG_KEYS, type ConfigKey, CONTEXT_ENV } from "./schema.ts";
import { noValues, type SourceValues, nearest, addValue } from "./values.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = "EVREG_";
/** Read by the command line framework, so neither ours nor a slip. */
const FRAMEWORK_VARIABLES = [
  "EVREG_DEBUG",
  "EVREG_DISABLE_THEME",
  "EVREG_BINPATH",
  "EVREG_CACHE_DIR",
  "EVREG_CONFIG_DIR",
];

/** In Kubernetes, a service named `evreg` puts these into every container beside it. */
const KUBERNETES_LINK =
  /^EVREG_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;
const KUBERNETES_ADDRESS = /^(?:tcp|udp|sctp):\/\//;

interface EnvironmentValues extends SourceValues {
  readonly configFile: string | undefined;
  readonly contextName: string | undefined;
}

/**
 * Reads every `EVREG_*` variable; one that means nothing is a problem, so that a slip does not pass in silence.
 * A variable set to nothing counts as not set.
 */
export function readEnvironment(env: Environment, cwd: string): EnvironmentValues {
  const result = noValues();
  for (const key of CONFIG_KEYS) readKey(result, key, env, cwd);
  const known = knownVariables();
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(PREFIX) || value === undefined || known.has(name) || fromKubernetes(name, value))
      continue;
    const meant = nearest(
      name.slice(PREFIX.length),
      [...known].filter((other) => other.startsWith(PREFIX)).map((other) => other.slice(PREFIX.length)),
    );
    const advice =
      meant === undefined
        ? "unset it, or see config.example.yaml for those there are"
        : `did you mean ${PREFIX}${meant}?`;
    result.problems.push({ name, place: name, message: `this variable means nothing to evreg; ${advice}` });
  }
  return { ...result, configFile: text(env, CONFIG_FILE_ENV), contextName: text(env, CONTEXT_ENV) };
}

function readKey(into: SourceValues, key: ConfigKey, env: Environment, cwd: string): void {
  const given: { place: string; value: string }[] = [];
  for (const name of [key.env, key.envAlias]) {
    const value = name === undefined ? undefined : text(env, name);
    if (name === undefined || value === undefined || fromKubernetes(name, value)) continue;
    given.push({ place: name, value });
  }
  if (key.secret === true) {
    const place = `${key.env}_FILE`;
    const path = text(env, place);
    if (path !== undefined) {
      const value = readSecretFile(into, key, place, resolve(cwd, path));
      if (value === undefined) return;
      given.push({ place, value });
    }
  }
  const [first, second] = given;
  if (first === undefined) return;
  if (second !== undefined && second.value !== first.value) {
    const message = `${first.place} and ${second.place} both set ${key.path}, to different values; unset one of them`;
    into.problems.push({ name: key.path, place: second.place, message });
    return;
  }
  addValue(into, key, first.value, { source: "environment", place: first.place, base: cwd });
}

function readSecretFile(into: SourceValues, key: ConfigKey, place: string, path: string): string | undefined {
  try {
    const value = readFileSync(path, "utf8").trim();
    if (value !== "") return value;
    into.problems.push({
      name: key.path,
      place,
      message: `the file ${path} that should hold ${key.path} is empty`,
    });
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? "unreadable";
    const message = `the file ${path} that should hold ${key.path} cannot be read (${why})`;
    into.problems.push({ name: key.path, place, message });
  }
  return undefined;
}

function knownVariables(): Set<string> {
  const known = new Set([CONFIG_FILE_ENV, CONTEXT_ENV, ...FRAMEWORK_VARIABLES]);
  for (const key of CONFIG_KEYS) {
    known.add(key.env);
    if (key.envAlias !== undefined) known.add(key.envAlias);
    if (key.secret === true) known.add(`${key.env}_FILE`);
  }
  return known;
}

function fromKubernetes(name: string, value: string): boolean {
  return KUBERNETES_LINK.test(name) || (/^EVREG_(?:\w+_)?PORT$/.test(name) && KUBERNETES_ADDRESS.test(value));
}

function text(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}
