import { durationText } from "../domain/duration.ts";
import type { Config } from "./config.ts";
import type { Source } from "./found.ts";
import type { LoadedConfig } from "./load.ts";
import { CONFIG_KEYS, type ConfigKey } from "./schema.ts";
import type { ConfigValue } from "./values.ts";

/** One key of a configuration in force. */
export interface ShownKey {
  /** Dotted. */
  readonly key: string;
  /** As a file would have it; `null` when it is not set, and never a secret. */
  readonly value: ConfigValue | null;
  readonly source: Source | "default";
  /** `--port`, `EVREG_PORT`, `/etc/evreg.yaml:3:5`; `null` for a default. */
  readonly place: string | null;
}

const SECRET_SHOWN = "(not shown)";

/** Every key, in the order of the table. */
export function shownKeys({ config, places }: Pick<LoadedConfig, "config" | "places">): ShownKey[] {
  return CONFIG_KEYS.map((key) => {
    const value = valueAt(config, key);
    const found = value === undefined ? undefined : places.get(key.path);
    return {
      key: key.path,
      value: value === undefined ? null : shown(key, value),
      source: found?.source ?? "default",
      place: found?.place ?? null,
    };
  });
}

function valueAt(config: Config, { path }: ConfigKey): ConfigValue | undefined {
  const [outer = "", inner] = path.split(".");
  const at = (config as unknown as Record<string, unknown>)[outer];
  return (inner === undefined ? at : (at as Record<string, unknown>)[inner]) as ConfigValue | undefined;
}

function shown(key: ConfigKey, value: ConfigValue): ConfigValue {
  if (key.secret === true) return SECRET_SHOWN;
  if (key.type.kind !== "duration" || typeof value !== "number") return value;
  return value === 0 ? "off" : durationText(value);
}
