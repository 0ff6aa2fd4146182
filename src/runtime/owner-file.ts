import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  type Stats,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { EvregError } from "../domain/error.ts";
import { DATA_FILE, OWNER_FILE } from "./data-files.ts";
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
  readonly file: Pick<Stats, "uid" | "mode" | "mtimeMs">;
}

const MAX_BYTES = 64 * 1024;

/**
 * The last owner that wrote its file, or `undefined` when there is none that can be read. Anybody who may write to the
 * folder may have made it up: good for a message, and for anything else only after `trustOwner`.
 */
export function readOwner(folder: string): WrittenOwner | undefined {
  try {
    const { text, uid, mode, mtimeMs } = readOwned(ownerFileOf(folder), MAX_BYTES);
    const value: unknown = JSON.parse(text);
    return isOwner(value) ? { ...value, file: { uid, mode, mtimeMs } } : undefined;
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
    replaceFile(ownerFileOf(folder), `${JSON.stringify(owner)}\n`, { durable: false });
  } catch (error) {
    if (owner.command !== "serve") return;
    logger.warn(
      { folder, why: (error as Error).message },
      `The file ${OWNER_FILE} cannot be written, so other commands cannot see which process has the data folder; until the next start, name this server to them with --url.`,
    );
  }
}

/** Keeps the file open, by which others see that this process serves the folder; the answer lets go of it. */
export function holdOwnerFile(folder: string): () => void {
  const descriptor = openSync(ownerFileOf(folder), "r");
  return () => closeSync(descriptor);
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

function isOwner(value: unknown): value is Owner {
  if (typeof value !== "object" || value === null) return false;
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

/**
 * Refuses the owner file of a folder that came from elsewhere, as with a cloned repository. Its files belong to this user and
 * name any process and address, but that process does not have the folder's data file open. Where the system does not show
 * what a process has open, the file is trusted.
 * @throws EvregError `usage`
 */
export function assertDataOpen(folder: string, { pid, url = "" }: Owner): void {
  if (!existsSync("/proc/self/fd") || hasDataOpen(folder, pid)) return;
  throw new EvregError(
    "usage",
    `Only ${ownerFileOf(folder)} names the server ${url}, and evreg cannot see that its process (${pid}) has the data of this folder open. A file that was found here may be anybody's, so nothing was sent there. If that server is meant, name it with --url or EVREG_URL, or the folder with --data or EVREG_DATA; otherwise remove that file.`,
    { folder },
  );
}

/**
 * Looks at the real paths that the system shows, so a link in the folder to a file that some process has open does not
 * count.
 */
function hasDataOpen(folder: string, pid: number): boolean {
  const real = realpathSync(folder);
  // One whose data are in a database has this file open instead, see `holdOwnerFile`.
  const held = new Set([join(real, DATA_FILE), join(real, OWNER_FILE)]);
  const isData = (descriptor: string): boolean => {
    try {
      const path = readlinkSync(`/proc/${pid}/fd/${descriptor}`);
      // A server still serves a file that was removed.
      return held.has(path.replace(/ \(deleted\)$/, ""));
    } catch {
      // It was closed meanwhile.
      return false;
    }
  };
  try {
    const { uid } = statSync(`/proc/${pid}`);
    return (isOurs({ uid }) || uid === statSync(folder).uid) && readdirSync(`/proc/${pid}/fd`).some(isData);
  } catch {
    return false;
  }
}

/**
 * Refuses a link that leads root into another user's folder: whoever made it could make root write there.
 * @throws EvregError `usage`
 */
export function assertNotForeignLink(folder: string): void {
  if (!isRoot() || lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  const { uid } = statSync(folder, { throwIfNoEntry: false }) ?? { uid: 0 };
  if (uid === 0) return;
  const target = realpathSync(folder);
  throw new EvregError(
    "usage",
    `${folder} is a link to ${target}, which belongs to another user (${uid}), and root does not follow it. Run evreg as that user; or, if you mean that folder, name it: --data ${target}`,
    { folder },
  );
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}
