import { resolve } from "node:path";
import type { Config } from "./config.ts";
import type { Environment } from "./environment.ts";
import { CONFIG_KEYS } from "./schema.ts";
import { checkValue, type ConfigValue } from "./values.ts";

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

/** Where data goes when nobody says: the folder systemd made for the service, else `.evreg` in the working directory. */
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
