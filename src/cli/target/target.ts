import { existsSync } from "node:fs";
import { join } from "node:path";
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
import { nextCommand, serveCommand, setForDevelopment, type TargetFlags } from "./next-command.ts";

export interface Target {
  readonly evreg: Evreg;
  readonly kind: "remote" | "local";
  /** The address, the data folder or the database, for a person. */
  readonly location: string;
}

export interface TargetNeeds {
  /** The command's words, for the owner file of a folder opened in-process. */
  readonly command: string;
  /** The version of this program. */
  readonly version: string;
  /** Whether missing data are made, and their folder with them. Only for commands that add records: others would leave empty folders. */
  readonly creates?: "folder" | "data" | undefined;
  /** The flag or command that needs a server, such as `--wait`; a folder without one is refused, as only a server delivers. */
  readonly serverFor?: string | undefined;
}

/**
 * Where a command acts, first match: `--url`, `EVREG_URL`, `remote.url` of the configuration, the server running on the
 * data folder, the data folder itself. `--data` on the command line goes before an address that only the environment or the
 * configuration names. A server on the data folder gets the token that was typed, else that of the environment if it is not
 * for another address, else the folder's own, else one in the configuration file.
 */
export async function openTarget(
  { "token-file": file, ...flags }: TargetFlags,
  needs: TargetNeeds,
): Promise<Target> {
  const { command, version } = needs;
  // Read once: it may come from stdin.
  const typed: TargetFlags = file === undefined ? flags : { ...flags, token: await readToken(file) };
  const loaded = await readSettings({ ...typed });
  const server = await serverFor(typed, loaded);
  if (server !== undefined) return server;
  const { config } = loaded;
  const { url: database } = config.database;
  if (database === undefined && needs.creates !== "folder" && !existsSync(config.data))
    throw noFolder(config.data);
  const { databaseName, openLocal } = await import("../../app/server.ts");
  const { serverFor: purpose } = needs;
  const needsData = needs.creates === undefined || purpose !== undefined;
  try {
    const evreg = await openLocal({ command, version, config, needsData, logger: stderrLogger });
    if (database === undefined) await lookForTokens(evreg, config.data);
    if (purpose !== undefined) {
      await evreg.close();
      throw noServer(purpose, config.data);
    }
    const location = database === undefined ? config.data : databaseName(database);
    return { evreg, kind: "local", location };
  } catch (error) {
    if (!(error instanceof EvregError) || error.code !== "conflict") throw error;
    // A server may have taken the folder meanwhile, and can be asked then.
    const now = await serverFor(typed, loaded);
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

/**
 * The server a command acts on, by the rules of `openTarget`; `undefined` for a data folder without one.
 * @param flags with the token that was typed, wherever it came from
 * @throws EvregError `usage` for a server that only a file found by chance names: the file may have come with a cloned
 * repository, and neither a payload nor a token goes where it says
 */
async function serverFor(flags: TargetFlags, loaded: LoadedConfig): Promise<Target | undefined> {
  const { config, unnamedUrlPlace: place } = loaded;
  const { url, token: configured, allowInsecureToken } = config.remote;
  if (url !== undefined && flags.data === undefined) {
    if (place === undefined) return connectTo(url, configured, allowInsecureToken);
    throw usageError(
      `Only ${place} names the server ${url}. A file that was found here may be anybody's, so nothing was sent there. If that is meant, name it with --url or EVREG_URL, or the file with --config or EVREG_CONFIG.`,
    );
  }
  const server = await findServer(config.data);
  if (server === undefined) {
    // Any other server has a token.
    const wasForDevelopment = existsSync(join(config.data, DATA_FILE)) && !tokenFileOf(config.data);
    setForDevelopment(config.database.url === undefined && wasForDevelopment);
    return undefined;
  }
  // A configured token is for the server configured with it, and never goes to another user's server.
  const ours = url === undefined && server.otherUser === undefined ? configured : undefined;
  const own = readTokenFile(config.data, server.otherUser);
  const isSaid = loaded.places.get("remote.token")?.source === "environment";
  const token = flags.token ?? (isSaid ? (ours ?? own) : (own ?? ours));
  // It is on this machine, so nothing crosses a network, whichever address it listens at.
  return connectTo(server.url, token, true);
}

async function connectTo(
  url: string,
  token: string | undefined,
  allowInsecureToken: boolean,
): Promise<Target> {
  const { connect } = await import("../../client/client.ts");
  const evreg = connect({ url, allowInsecureToken, ...(token === undefined ? {} : { token }) });
  return { evreg, kind: "remote", location: url };
}

/** Data that have tokens are for a server that asks for them: a restore brings tokens into a folder without a token file. */
async function lookForTokens(evreg: Evreg, data: string): Promise<void> {
  if (tokenFileOf(data) !== undefined) return;
  const { data: tokens } = await evreg.tokens.list();
  if (tokens.length > 0) setForDevelopment(false);
}

function noFolder(data: string): EvregError {
  return new EvregError(
    "not_found",
    `There is no data folder ${data}. Name another with --data or a server with --url; to begin here, start one with \`${serveCommand()}\` or create the first action with \`${nextCommand("actions create")}\`.`,
  );
}

function noServer(flag: string, data: string): Error {
  return usageError(
    `${flag} needs a server, and none is running on the data folder ${data}: only a server delivers, and shows what happens. Nothing was done. Start one with \`${serveCommand()}\`${flag.startsWith("--") ? `, name another with --url, or leave ${flag} out.` : " or name another with --url."}`,
  );
}

/** The configuration for one command; prints its warnings on stderr. `usage` lists every mistake in it. */
export async function readSettings(
  flags: Readonly<Record<string, unknown>> & { readonly config?: string | undefined },
): Promise<LoadedConfig> {
  const loaded = await loadConfig({ flags, env: process.env, cwd: process.cwd(), configFile: flags.config });
  for (const warning of loaded.warnings) note(`Warning: ${escapeControlKeepingLines(warning)}`);
  return loaded;
}
