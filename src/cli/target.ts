import { existsSync, realpathSync } from "node:fs";
import type { Config } from "../config/config.ts";
import { EvregError } from "../domain/error.ts";
import type { Evreg } from "../evreg.ts";
import { findServer } from "../runtime/find-server.ts";
import { readTokenFile } from "../runtime/token-file.ts";
import { readInput } from "./input.ts";
import { readSettings } from "./settings.ts";
import { stderrLogger } from "./stderr-logger.ts";
import { usage } from "./usage.ts";

export interface TargetFlags {
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly "token-file"?: string | undefined;
  readonly data?: string | undefined;
  readonly config?: string | undefined;
}

export interface Target {
  readonly evreg: Evreg;
  readonly kind: "remote" | "local";
  /** The address or the data folder, for a person. */
  readonly where: string;
  /** The same from run to run: a data folder is itself, whether a server has it or not and whatever that one's port. */
  readonly place: string;
}

export interface TargetNeeds {
  /** The command's words, for the owner file of a folder opened in-process. */
  readonly command: string;
  /** Of this program. */
  readonly version: string;
  /** Whether a data folder that is not there yet is made; a command that only looks would else leave one wherever it is typed. */
  readonly createsFolder?: boolean;
  /**
   * What was asked for, such as `--wait`, is for a server: a folder without one is refused. A command that delivered
   * would send what others have due too, by the settings of the shell it was typed in.
   */
  readonly serverFor?: string | undefined;
}

/** A data folder that no server runs on, with the configuration that names it. */
export interface FolderTarget {
  readonly kind: "folder";
  readonly config: Config;
}

/**
 * Where a command acts, first match: `--url`, `EVREG_URL`, `remote.url` of the configuration, the server running on the
 * data folder, the data folder itself. `--data` on the command line goes before an address that only the environment
 * or the configuration names. A server on the data folder gets the token that was typed, else the folder's own, else
 * the configured one if it is not for another address.
 */
export async function openTarget(flags: TargetFlags, needs: TargetNeeds): Promise<Target> {
  const found = await findTarget(flags);
  if (found.kind !== "folder") return found;
  const { config } = found;
  if (needs.createsFolder !== true && !existsSync(config.data)) throw noFolder(config.data);
  if (needs.serverFor !== undefined) throw noServer(needs.serverFor, config.data);
  const { openLocal } = await import("../app.ts");
  const { command, version } = needs;
  const evreg = await openLocal({ command, version, config, logger: stderrLogger });
  return { evreg, kind: "local", where: config.data, place: realpathSync(config.data) };
}

/** The same without opening a data folder. */
export async function findTarget(flags: TargetFlags): Promise<Target | FolderTarget> {
  const tokenFile = flags["token-file"];
  const token = tokenFile === undefined ? flags.token : await tokenIn(tokenFile);
  const { config, remoteRefusal } = await readSettings({ ...flags, token });
  const { url, allowInsecureToken } = config.remote;
  if (url !== undefined && flags.data === undefined) {
    if (remoteRefusal !== undefined) throw usage(remoteRefusal);
    return remote({ url, token: config.remote.token, allowInsecureToken }, url);
  }
  const server = await findServer(config.data);
  if (server === undefined) return { kind: "folder", config };
  // A token that came with another server's address is not this one's, and one that is lying about in the environment
  // is not another user's to have.
  const configured = url === undefined && server.otherUser === undefined ? config.remote.token : undefined;
  const own = readTokenFile(config.data, server.otherUser);
  // It is on this machine, so nothing crosses a network, whichever address it listens at.
  const address = { url: server.url, token: token ?? own ?? configured, allowInsecureToken: true };
  return remote(address, realpathSync(config.data));
}

async function remote(
  {
    token,
    ...address
  }: {
    readonly url: string;
    readonly token: string | undefined;
    readonly allowInsecureToken: boolean;
  },
  place: string,
): Promise<Target> {
  const { connect } = await import("../client/connect.ts");
  const evreg = connect(token === undefined ? address : { ...address, token });
  return { evreg, kind: "remote", where: address.url, place };
}

function noFolder(data: string): EvregError {
  return new EvregError(
    "not_found",
    `There is no data folder ${data}. Name another with --data or a server with --url; to begin here, start one with \`evreg serve\` or create the first action with \`evreg actions create\`.`,
  );
}

function noServer(flag: string, data: string): Error {
  return usage(
    `${flag} needs a server, and none is running on the data folder ${data}: only a server delivers. Nothing was done. Start one with \`evreg serve\`, name another with --url, or leave ${flag} out.`,
  );
}

async function tokenIn(path: string): Promise<string> {
  const token = Buffer.from(await readInput(path))
    .toString("utf8")
    .trim();
  if (token === "") throw usage(`--token-file: ${path} is empty.`);
  return token;
}
