import { type Context, Contexts } from "../../config/contexts.ts";
import { type ConfigFlags, loadConfig, type LoadedConfig } from "../../config/load.ts";
import { note } from "../io/output.ts";
import { escapeControlKeepingLines } from "../io/text.ts";
import { usageError } from "../usage-errors.ts";

interface LocationFlags {
  readonly url?: string | undefined;
  readonly data?: string | undefined;
  readonly context?: string | undefined;
}

/** For telling only: what is wrong with the files is no matter here. */
export function contextInUse(configFolder: string): string | undefined {
  try {
    return new Contexts(configFolder).inUse();
  } catch {
    return undefined;
  }
}

/**
 * The context a command acts on, if any: the one typed, else that of `EVREG_CONTEXT`, else the one in use, unless a flag,
 * a variable or the configuration file names a server or a data folder.
 * @param configFolder that of this user's settings for evreg
 */
export function contextFor(
  flags: LocationFlags,
  { places, contextName }: Pick<LoadedConfig, "places" | "contextName">,
  configFolder: string,
): Context | undefined {
  const contexts = new Contexts(configFolder);
  if (flags.context !== undefined) return contexts.get(flags.context);
  if (flags.url !== undefined || flags.data !== undefined) return undefined;
  const url = places.get("remote.url");
  if (contextName !== undefined) {
    if (url?.source !== "environment") return contexts.get(contextName);
    throw usageError(
      `EVREG_CONTEXT and ${url.place} both name a server; unset one of them, or give --context or --url.`,
    );
  }
  if (url !== undefined || places.has("data")) return undefined;
  const name = contexts.inUse();
  return name === undefined ? undefined : contexts.get(name);
}

export interface TargetFlags {
  readonly url?: string | undefined;
  readonly context?: string | undefined;
  readonly token?: string | undefined;
  readonly "token-file"?: string | undefined;
  readonly data?: string | undefined;
  readonly config?: string | undefined;
}

/** The configuration for one command, with its warnings told on stderr. `usage` lists every mistake in it. */
export async function readSettings(
  flags: ConfigFlags & { config?: string | undefined },
): Promise<LoadedConfig> {
  const loaded = await loadConfig({ flags, env: process.env, cwd: process.cwd(), configFile: flags.config });
  for (const warning of loaded.warnings) note(`Warning: ${escapeControlKeepingLines(warning)}`);
  return loaded;
}
