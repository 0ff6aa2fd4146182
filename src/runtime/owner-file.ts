import { rmSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { EvregError } from "../domain/error.ts";
import { OWNER_FILE } from "./data-files.ts";
import { isOurs, othersMayWrite, readOwned, replaceFile } from "./files.ts";
import type { Logger } from "./logger.ts";

/**
 * Who holds the data folder: a hint for people and for commands that look for a running server. The store's lock decides,
 * which the system frees at a crash, so a file left by a killed process is harmless.
 */
export interface Owner {
  readonly pid: number;
  /** The command line's words, such as `serve` or `actions list`. */
  readonly command: string;
  /** Made anew at each start; `/health` answers it. */
  readonly instance: string;
  /** ISO 8601 UTC. */
  readonly started_at: string;
  /** Where the server answers, once it does. */
  readonly url?: string;
  /** The database that has its data, as host and name, where that is not the folder. */
  readonly database?: string;
}

/** An owner with the user, the permissions and the time of its file. */
export interface WrittenOwner extends Owner {
  readonly file: Pick<Stats, "uid" | "mode" | "mtimeMs"> & {
    /** Whether it was written here, and is no copy of another one, such as one that came with a cloned repository. */
    readonly isOriginal: boolean;
  };
}

const MAX_BYTES = 64 * 1024;

/**
 * The last owner that wrote its file, or `undefined` when there is none that can be read. Anybody who may write to the
 * folder may have made it up: good for a message, and for anything else only after `trustOwner`.
 */
export function readOwner(folder: string): WrittenOwner | undefined {
  try {
    const { text, uid, mode, mtimeMs, ino } = readOwned(ownerFileOf(folder), MAX_BYTES);
    const { inode, ...owner } = JSON.parse(text) as Record<string, unknown>;
    return isOwner(owner) ? { ...owner, file: { uid, mode, mtimeMs, isOriginal: inode === ino } } : undefined;
  } catch {
    return undefined;
  }
}

export function ownerFileOf(folder: string): string {
  return join(folder, OWNER_FILE);
}

/** Replaces the file in one step, readable by its owner only. A server only logs a failure: the lock is what counts. */
export function writeOwner(folder: string, owner: Owner, logger: Logger): void {
  try {
    const textOf = (inode: number): string => `${JSON.stringify({ ...owner, inode })}\n`;
    replaceFile(ownerFileOf(folder), textOf, { durable: false });
  } catch (error) {
    if (owner.command !== "serve") return;
    logger.warn(
      { folder, why: (error as Error).message },
      `The file ${OWNER_FILE} cannot be written, so other commands cannot see which process has the data folder; until the next start, name this server to them with --url.`,
    );
  }
}

/** Removes the file if it is still this instance's. */
export function removeOwner(folder: string, instance: string): void {
  if (readOwner(folder)?.instance === instance) rmSync(ownerFileOf(folder), { force: true });
}

/** Describes an owner in a message: `evreg serve (process 4711, http://127.0.0.1:7480, since …)`. */
export function describeOwner(owner: Owner): string {
  const address = owner.url === undefined ? "" : ` ${owner.url},`;
  return `evreg ${owner.command} (process ${owner.pid},${address} since ${owner.started_at})`;
}

/** Whether the process it names is there, be it this one's successor under the same number or another user's. */
export function isOwnerAlive({ pid }: Owner): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function isOwner(value: object): value is Owner {
  const { pid, command, instance, started_at, url = "" } = value as Record<string, unknown>;
  return (
    typeof pid === "number" && [command, instance, started_at, url].every((text) => typeof text === "string")
  );
}

/**
 * The owner file decides where tokens go, so it is only trusted when nobody but this user and root can have written it.
 * Root (`sudo`) also trusts the folder's own user, who gets no secret of anybody else: see the result.
 *
 * @returns the user who wrote it, where that is neither this one nor root
 * @throws EvregError `usage` when it cannot be trusted
 */
export function trustOwner(folder: string, { file }: WrittenOwner): number | undefined {
  const isForeign = !isOurs(file) && !(isRoot() && file.uid === statSync(folder).uid);
  if (!isForeign && !othersMayWrite(file) && folderTrustProblem(folder) === undefined) {
    return isOurs(file) ? undefined : file.uid;
  }
  const { why, remedy } = folderTrustProblem(folder) ?? {
    why: isForeign ? `it belongs to another user (${file.uid})` : "other users may write to it",
    remedy: `Remove ${ownerFileOf(folder)} and start the server again`,
  };
  throw new EvregError(
    "usage",
    `${ownerFileOf(folder)} says where the server on this data folder is, but it cannot be trusted: ${why}. ${remedy}; or name the server with --url, and its token with --token-file.`,
    { folder },
  );
}

/** Why others could tamper with a folder's files, and what to do about it, as parts of a sentence; `undefined` when only this user and root can. */
export function folderTrustProblem(folder: string): { why: string; remedy: string } | undefined {
  const stats = statSync(folder);
  if (!isOurs(stats) && !isRoot()) {
    return {
      why: `${folder} belongs to another user (${stats.uid})`,
      remedy: "Run evreg as that user, or on a folder of your own",
    };
  }
  if (!othersMayWrite(stats)) return undefined;
  return { why: `other users may write to ${folder}`, remedy: `Run: chmod 700 ${folder}` };
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}
