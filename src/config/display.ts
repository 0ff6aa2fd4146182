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
