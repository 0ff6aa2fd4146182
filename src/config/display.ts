import type { ConfigValue } from "./value-kinds.ts";
import type { LoadedConfig } from "./load.ts";
import { type Config, CONFIG_KEYS, type ConfigKey } from "./keys.ts";
import type { Source } from "./values.ts";

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
export function shownKeys({ config, places }: Pick<LoadedConfig, "config" | "places">): ShownKey[] {
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

const COLUMNS = 120;

const HEAD = [
  "Every key of evreg with its default. Copy what you change to evreg.config.yaml in the folder evreg is started in, or to config.yaml in the data folder or beside it, or name a file with --config or EVREG_CONFIG.",
  "Flags win over variables, variables over the file, the file over these defaults. `null` means not set.",
];

/** A configuration file that holds every key with its default, and changes nothing. */
export function exampleConfig(): string {
  let text = HEAD.map((line) => comment(line.split(" "), "")).join("");
  let before = "";
  for (const key of CONFIG_KEYS) {
    const { section, name } = key;
    text += "\n";
    if (section !== "" && section !== before) text += `${section}:\n`;
    before = section;
    const indent = section === "" ? "" : "  ";
    const value = typeof key.default === "string" ? key.default : JSON.stringify(key.default);
    text += `${comment(about(key), indent)}${indent}${name}: ${value}\n`;
  }
  return text;
}

/** What it is for, what it takes, and where else it can be set, in words that stay on one line each. */
function about({ path, kind, description, env, envAlias, flag }: ConfigKey): string[] {
  const { bounds, isList = false } = kind;
  const range = bounds === undefined || path === "port" ? [] : ["From", `${bounds.join(" to ")}.`];
  const variable = envAlias === undefined ? env : `${env} or ${envAlias}`;
  const sources = flag === undefined ? variable : `--${flag}, ${variable}`;
  return [...description.split(" "), ...range, `(${sources}${isList ? ", separated by commas" : ""})`];
}

function comment(words: readonly string[], indent: string): string {
  const lines: string[] = [];
  let line = `${indent}#`;
  for (const word of words) {
    if (line.length + 1 + word.length > COLUMNS) {
      lines.push(line);
      line = `${indent}#`;
    }
    line += ` ${word}`;
  }
  return [...lines, line].map((one) => `${one}\n`).join("");
}
