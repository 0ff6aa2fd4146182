import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { CONFIG_FILE_ENV, CONFIG_KEYS, type ConfigKey, CONTEXT_ENV } from "./keys.ts";
import { SourceValues } from "./values.ts";
import { nearest } from "../domain/words/nearest.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = "EVREG_";
const OF_KEYS = CONFIG_KEYS.flatMap(({ env, secret }) => (secret === true ? [env, `${env}_FILE`] : [env]));
/** The variables that mean something, without their prefix; the last five are the command line framework's. */
const KNOWN = new Set([
  ...[CONFIG_FILE_ENV, CONTEXT_ENV, ...OF_KEYS].map((name) => name.slice(PREFIX.length)),
  "DEBUG",
  "DISABLE_THEME",
  "BINPATH",
  "CACHE_DIR",
  "CONFIG_DIR",
]);

/** Kubernetes puts these into every container beside a service named `evreg`. */
const KUBERNETES_LINK =
  /^EVREG_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;
const KUBERNETES_ADDRESS = /^(?:tcp|udp|sctp):\/\//;

interface EnvironmentValues {
  readonly values: SourceValues;
  readonly configFile: string | undefined;
  readonly contextName: string | undefined;
}

/** Reads every `EVREG_*` variable. One that means nothing is a mistake; one without a value counts as not set. */
export function readEnvironment(env: Environment, cwd: string): EnvironmentValues {
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
  return { values, configFile: text(env, CONFIG_FILE_ENV), contextName: text(env, CONTEXT_ENV) };
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
