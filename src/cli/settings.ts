import { loadConfig, type ConfigFlags, type LoadedConfig } from "../config/load.ts";
import { note } from "./output.ts";
import { printableLines } from "./printable.ts";

/** The configuration for one command, with its warnings told on stderr. `usage` lists every mistake in it. */
export async function readSettings(
  flags: ConfigFlags & { config?: string | undefined },
): Promise<LoadedConfig> {
  const loaded = await loadConfig({ flags, env: process.env, cwd: process.cwd(), configFile: flags.config });
  for (const warning of loaded.warnings) note(`Warning: ${printableLines(warning)}`);
  return loaded;
}
