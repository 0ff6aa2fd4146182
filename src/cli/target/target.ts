import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Context, Contexts } from "../../config/contexts.ts";
import { loadConfig, type LoadedConfig } from "../../config/load.ts";
import type { Config } from "../../config/keys.ts";
import { EvregError } from "../../domain/error.ts";
import type { Evreg } from "../../evreg.ts";
import { note, stderrLogger } from "../io/output.ts";
import { readToken } from "../io/prompts.ts";
import { DATA_FILE } from "../../runtime/data-files.ts";
import { findServer, readTokenFile, tokenFileOf } from "../../runtime/find-server.ts";
import { escapeControlKeepingLines } from "../io/text.ts";
import { usageError } from "../usage-errors.ts";
import { nextCommand, plainCommand, serveCommand, type TargetFlags } from "./next-command.ts";

export interface Target {
  readonly evreg: Evreg;
  readonly kind: "remote" | "local";
  /** The address, the data folder or the database, for a person. */
  readonly location: string;
  /** The name of the context that led there, if one did. */
  readonly context?: string;
}

export interface TargetNeeds {
  /** The folder of this user's settings for evreg. */
  readonly configFolder: string;
  /** The command's words, for the owner file of a folder opened in-process. */
  readonly command: string;
  /** The version of this program. */
  readonly version: string;
  /** Whether missing data are made, and their folder with them. Only for commands that add records: others would leave empty folders. */
  readonly creates?: "folder" | "data" | undefined;
  /** The flag or command that needs a server, such as `--wait`; a folder without one is refused, as only a server delivers. */
  readonly serverFor?: string | undefined;
}

/** A data folder that no server runs on, with the configuration that names it. */
export interface FolderTarget {
  readonly kind: "folder";
  readonly config: Config;
  /** Whether a flag, the environment or a file names the folder, and it is not the default one. */
  readonly isNamed: boolean;
}

/** A server that a command acts on, with the token for it. */
interface Address {
  readonly url: string;
  readonly token: string | undefined;
  readonly allowInsecureToken: boolean;
  /** The name of the context that it is of. */
  readonly context?: string;
}

/**
 * Where a command acts, first match: `--url` or `--context`, `EVREG_URL` or `EVREG_CONTEXT`, `remote.url` of the
 * configuration, the context in use, the server running on the data folder, the data folder itself. `--data` on the
 * command line goes before an address that only the environment or the configuration names, a data folder that any of
 * them names before the context in use. A server on the data folder gets the token that was typed, else that of the
 * environment if it is not for another address, else the folder's own, else one in the configuration file.
 */
export async function openTarget(flags: TargetFlags, needs: TargetNeeds): Promise<Target> {
  const { command, version, configFolder } = needs;
  const { loaded, askForServer } = await readTarget(flags, configFolder);
  const server = await askForServer();
  if (server !== undefined) return server;
  const { config } = loaded;
  const { url: database } = config.database;
  if (database === undefined && needs.creates !== "folder" && !existsSync(config.data))
    throw noFolder(config.data);
  if (needs.serverFor !== undefined) throw noServer(needs.serverFor, config.data);
  const { databaseName, openLocal } = await import("../../app/server.ts");
  const needsData = needs.creates === undefined;
  try {
    const evreg = await openLocal({ command, version, config, needsData, logger: stderrLogger });
    const location = database === undefined ? config.data : databaseName(database);
    return { evreg, kind: "local", location };
  } catch (error) {
    if (!(error instanceof EvregError) || error.code !== "conflict") throw error;
    // A server may have taken the folder meanwhile, and can be asked then.
    const now = await askForServer();
    if (now === undefined) throw error;
    return now;
  }
}

/**
 * Refuses a database for commands that are about the files of a data folder.
 * @throws EvregError `usage` where the data are in a database
 */
export function mustBeInFolder({ database }: Pick<Config, "database">, instead: string): void {
  if (database.url === undefined) return;
  const message = `The data are in a PostgreSQL database (database.url), and this command is for data files. ${instead}`;
  throw new EvregError("usage", message);
}

/** Finds the target without opening a data folder. */
export async function findTarget(flags: TargetFlags, configFolder: string): Promise<Target | FolderTarget> {
  const { loaded, askForServer } = await readTarget(flags, configFolder);
  const server = await askForServer();
  return server ?? { kind: "folder", config: loaded.config, isNamed: loaded.places.has("data") };
}

/** Reads what a command is to go by, once: a token may come from stdin. Its server may be looked for again. */
async function readTarget({ "token-file": file, ...flags }: TargetFlags, configFolder: string) {
  const typed: TargetFlags = file === undefined ? flags : { ...flags, token: await readToken(file) };
  const loaded = await readSettings({ ...typed });
  const askForServer = async (): Promise<Target | undefined> => {
    const address = await serverFor(typed, loaded, configFolder);
    return address === undefined ? undefined : connected(address);
  };
  return { loaded, askForServer };
}

/**
 * The server a command acts on, by the rules of `openTarget`; `undefined` for a data folder without one.
 * @param flags with the token that was typed, wherever it came from
 * @throws EvregError `usage` for a server or a data folder that only a file found by chance names: the file may have come
 * with a cloned repository, and neither a payload nor a token goes where it says
 */
async function serverFor(
  flags: TargetFlags,
  loaded: LoadedConfig,
  configFolder: string,
): Promise<Address | undefined> {
  const { config, unnamedPlace } = loaded;
  const { url, token: configured, allowInsecureToken } = config.remote;
  const context = contextFor(flags, loaded, configFolder);
  if (context !== undefined) return addressOf(context, flags, loaded);
  if (url !== undefined && flags.data === undefined) {
    const unnamedUrlPlace = unnamedPlace("remote.url");
    if (unnamedUrlPlace !== undefined && !isKnown(url, configFolder)) {
      const remedy = `name it with --url or EVREG_URL, name the file with --config or EVREG_CONFIG, or keep the server as a context: ${plainCommand(`context add NAME --url ${url}`)}`;
      const sentence = `Only ${unnamedUrlPlace} names the server ${url}`;
      throw notMeant(sentence, contextInUse(configFolder), remedy);
    }
    return { url, token: configured, allowInsecureToken };
  }
  const unnamedDataPlace = unnamedPlace("data");
  const inUse = unnamedDataPlace === undefined ? undefined : contextInUse(configFolder);
  if (inUse !== undefined) {
    const remedy = `name it with --data or EVREG_DATA, or the file with --config or EVREG_CONFIG; if ${inUse} is meant, give --context ${inUse}.`;
    const sentence = `Only ${unnamedDataPlace} names the data folder ${config.data}`;
    throw notMeant(sentence, inUse, remedy);
  }

  const server = await findServer(config.data);
  if (server === undefined) return undefined;
  // A configured token is for the server configured with it, and never goes to another user's server.
  const ours = url === undefined && server.otherUser === undefined ? configured : undefined;
  const own = readTokenFile(config.data, server.otherUser);
  // It is on this machine, so nothing crosses a network, whichever address it listens at.
  const isSaid = loaded.places.get("remote.token")?.source === "environment";
  const token = flags.token ?? (isSaid ? (ours ?? own) : (own ?? ours));
  return { url: server.url, token, allowInsecureToken: true };
}

/** Whether it is the address of the context in use, or of any context where none is in use. A damaged one has no address. */
function isKnown(url: string, configFolder: string): boolean {
  const contexts = new Contexts(configFolder);
  const inUse = contexts.inUse();
  if (inUse !== undefined) return contexts.get(inUse).url === url;
  return contexts.names().some((name) => {
    try {
      return contexts.get(name).url === url;
    } catch {
      return false;
    }
  });
}

/** @param found where it was found and what it is, as the beginning of a sentence */
function notMeant(found: string, inUse: string | undefined, remedy: string): EvregError {
  const sentence = inUse === undefined ? found : `${found}, and your context in use is ${inUse}`;
  return usageError(
    `${sentence}. A file that was found here may be anybody's, so nothing was sent there. If that is meant, ${remedy}`,
  );
}

/** @returns the context's own token where the context was typed, else what the environment has instead of it */
function addressOf(
  { name, url, token, allowInsecureToken = false }: Context,
  flags: TargetFlags,
  loaded: LoadedConfig,
): Address {
  const { remote: configured } = loaded.config;
  // What a file says is for the address in the same file.
  const byVariable = (key: string) => loaded.places.get(key)?.source === "environment";
  const variable = byVariable("remote.token") ? configured.token : undefined;
  return {
    url,
    token: flags.token ?? (flags.context === undefined ? (variable ?? token) : (token ?? variable)),
    allowInsecureToken:
      allowInsecureToken || (byVariable("remote.allowInsecureToken") && configured.allowInsecureToken),
    context: name,
  };
}

async function connected({ token, context, ...address }: Address): Promise<Target> {
  const { connect } = await import("../../client/client.ts");
  const evreg = connect(token === undefined ? address : { ...address, token });
  const target: Target = { evreg, kind: "remote", location: address.url };
  return context === undefined ? target : { ...target, context };
}

function noFolder(data: string): EvregError {
  return new EvregError(
    "not_found",
    `There is no data folder ${data}. Name another with --data or a server with --url or --context; to begin here, start one with \`${serveCommand()}\` or create the first action with \`${nextCommand("actions create")}\`.`,
  );
}

function noServer(flag: string, data: string): Error {
  // Any other server has a token.
  const wasForDevelopment = existsSync(join(data, DATA_FILE)) && tokenFileOf(data) === undefined;
  return usageError(
    `${flag} needs a server, and none is running on the data folder ${data}: only a server delivers, and shows what happens. Nothing was done. Start one with \`${serveCommand(wasForDevelopment ? " --dev" : "")}\`${flag.startsWith("--") ? `, name another with --url, or leave ${flag} out.` : " or name another with --url."}`,
  );
}

/** Reads it for messages only, so mistakes in the files do not matter here. */
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
  flags: TargetFlags,
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

/** The configuration for one command; prints its warnings on stderr. `usage` lists every mistake in it. */
export async function readSettings(
  flags: Readonly<Record<string, unknown>> & { readonly config?: string | undefined },
): Promise<LoadedConfig> {
  const loaded = await loadConfig({ flags, env: process.env, cwd: process.cwd(), configFile: flags.config });
  for (const warning of loaded.warnings) note(`Warning: ${escapeControlKeepingLines(warning)}`);
  return loaded;
}
