import { isIP } from "node:net";
import { resolve } from "node:path";
import { parseEncryptionKey } from "../domain/formats.ts";
import { type ConfigValue, quoteShort } from "./value-kinds.ts";
import { type Config, CONFIG_KEYS, type ConfigKey } from "./keys.ts";

export type Source = "flag" | "environment" | "file";

/** A value with where it was found. */
export interface Found {
  readonly value: ConfigValue;
  readonly source: Source;
  /** The place for a person: `--port`, `EVREG_PORT`, `/etc/evreg.yaml:3:5`. */
  readonly place: string;
}

/** A mistake: where, and a sentence that says what is wrong and what is allowed. */
export interface ConfigProblem {
  /** The key as configured, or the name that is none. */
  readonly name: string;
  readonly place: string;
  readonly message: string;
}

/** What one source holds. */
export class SourceValues {
  readonly found = new Map<string, Found>();
  readonly problems: ConfigProblem[] = [];
  readonly #source: Source;
  readonly #base: string;

  /** @param base the folder that relative paths start at */
  constructor(source: Source, base: string) {
    this.#source = source;
    this.#base = base;
  }

  /** Checks one value and files it under its key, or notes what is wrong with it. */
  add(key: ConfigKey, raw: unknown, place: string): void {
    const { path, kind, secret } = key;
    // Only a file has numbers, booleans and lists as such.
    const text = typeof raw === "string" && this.#source !== "file" ? raw.trim() : undefined;
    const typed = text === undefined ? raw : (kind.fromText?.(text) ?? text);
    const value = kind.read(typed);
    if (value === undefined) {
      const isHidden = secret === true || kind.isHidden === true;
      const wrong = isHidden ? "" : `, not ${quoteShort(typed)}`;
      return this.refuse(path, place, `${path} must be ${kind.allowed}${wrong}`);
    }
    const whole = kind.isPath === true ? resolve(this.#base, String(value)) : value;
    this.found.set(path, { value: whole, source: this.#source, place });
  }

  refuse(name: string, place: string, message: string): void {
    this.problems.push({ name, place, message });
  }
}

/** Whether a listener on this host can only be reached from this machine. Other names are not looked up: they could change. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, "");
  if (name === "localhost") return true;
  if (isIP(name) === 4) return name.startsWith("127.");
  return isIP(name) === 6 && new URL(`http://[${name}]`).hostname === "[::1]";
}

/** The keys themselves; `undefined` when there is none to encrypt with. */
export function encryptionKeys({
  key,
  previousKey,
}: Config["encryption"]): { readonly key: Uint8Array; readonly previous?: Uint8Array } | undefined {
  if (key === undefined) return undefined;
  const previous = previousKey === undefined ? {} : { previous: parseEncryptionKey(previousKey)! };
  return { key: parseEncryptionKey(key)!, ...previous };
}

/** One key of a configuration in force. */
export interface ShownKey {
  /** Dotted. */
  readonly key: string;
  /** The value as a file would have it; `null` when it is not set, and never a secret. */
  readonly value: ConfigValue | null;
  readonly source: Source | "default";
  /** `--port`, `EVREG_PORT`, `/etc/evreg.yaml:3:5`; `null` for a default. */
  readonly place: string | null;
}

/** Every key, in the order of the table. */
export function shownKeys({
  config,
  places,
}: {
  readonly config: Config;
  readonly places: ReadonlyMap<string, Found>;
}): ShownKey[] {
  return CONFIG_KEYS.map((key) => {
    const value = valueAt(config, key);
    const place = value === undefined ? undefined : places.get(key.path);
    return {
      key: key.path,
      value: value === undefined ? null : shown(key, value),
      source: place?.source ?? "default",
      place: place?.place ?? null,
    };
  });
}

/** What nodes on one database should have alike: each value as JSON of what a file would have. */
export function nodeSettings(config: Config): Readonly<Record<string, string>> {
  const keys = CONFIG_KEYS.filter(({ ofAllNodes }) => ofAllNodes === true);
  return Object.fromEntries(
    keys.map((key) => {
      const value = valueAt(config, key);
      return [key.path, JSON.stringify(value === undefined ? null : shown(key, value))];
    }),
  );
}

function valueAt(config: Config, { section, name }: ConfigKey): ConfigValue | undefined {
  const holder = section === "" ? config : config[section as keyof Config];
  return (holder as Readonly<Record<string, ConfigValue>>)[name];
}

function shown({ kind, secret }: ConfigKey, value: ConfigValue): ConfigValue {
  return secret === true ? "(not shown)" : (kind.show?.(value) ?? value);
}
