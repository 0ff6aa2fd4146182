import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
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
}

const MAX_BYTES = 64 * 1024;

/** An owner with who wrote its file. */
interface WrittenOwner {
  readonly owner: Owner;
  readonly uid: number;
  /** The file's permissions, as `Stats.mode`. */
  readonly mode: number;
}

/**
 * The last owner that wrote its file, or `undefined` when there is none that can be read. Anybody who may write to the
 * folder may have made it up: good for a message, not for trusting.
 */
export function readOwner(folder: string): Owner | undefined {
  return readWrittenOwner(folder)?.owner;
}

/** The same, with what `trustOwner` needs. */
export function readWrittenOwner(folder: string): WrittenOwner | undefined {
  try {
    const { text, uid, mode } = readOwned(ownerFileOf(folder), MAX_BYTES);
    const value: unknown = JSON.parse(text);
    return isOwner(value) ? { owner: value, uid, mode } : undefined;
  } catch {
    return undefined;
  }
}

export function ownerFileOf(folder: string): string {
  return join(folder, OWNER_FILE);
}

/** Also where the system limits what one user may store. */
const DISK_FULL_CODES = new Set(["ENOSPC", "EDQUOT"]);

/**
 * Replaces the file in one step, readable by its owner only. A full disk is only logged, as reading needs no space.
 * @throws EvregError `unavailable` when the folder cannot be written to
 */
export function writeOwner(folder: string, owner: Owner, logger: Logger): void {
  try {
    replaceFile(ownerFileOf(folder), `${JSON.stringify(owner)}\n`, { durable: false });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!DISK_FULL_CODES.has(code ?? "")) {
      throw new EvregError(
        "unavailable",
        `The file ${OWNER_FILE} cannot be written to the data folder ${folder}: the system says: ${message}; make it writable, or give another folder with --data.`,
        { folder },
        { cause: error },
      );
    }
    logger.warn(
      { folder },
      "The disk of the data folder is full, so other commands cannot see which process has the folder.",
    );
  }
}

/** Removes the file if it is still this instance's. */
export function removeOwner(folder: string, instance: string): void {
  if (readOwner(folder)?.instance === instance) rmSync(ownerFileOf(folder), { force: true });
}

/** For a message: `evreg serve (process 4711, http://127.0.0.1:7480, since …)`. */
export function describeOwner(owner: Owner): string {
  const address = owner.url === undefined ? "" : ` ${owner.url},`;
  return `evreg ${owner.command} (process ${owner.pid},${address} since ${owner.started_at})`;
}

function isOwner(value: unknown): value is Owner {
  if (typeof value !== "object" || value === null) return false;
  const { pid, command, instance, started_at, url = "" } = value as Record<string, unknown>;
  return (
    typeof pid === "number" && [command, instance, started_at, url].every((text) => typeof text === "string")
  );
}

/** Why the files of a folder cannot be trusted, and what to do about it; both as parts of a sentence. */
interface TrustProblem {
  readonly why: string;
  readonly remedy: string;
}

/**
 * The owner file decides where tokens go, so it is only trusted when nobody but this user and root can have written it.
 * Root (`sudo`) also trusts the folder's own user, who gets no secret of anybody else: see the result.
 *
 * @returns the user who wrote it, where that is neither this one nor root
 * @throws EvregError `usage` when it cannot be trusted
 */
export function trustOwner(folder: string, file: WrittenOwner): number | undefined {
  const problem = folderTrustProblem(folder) ?? fileTrustProblem(folder, file);
  if (problem === undefined) return isOurs(file) ? undefined : file.uid;
  throw new EvregError(
    "usage",
    `${ownerFileOf(folder)} says where the server on this data folder is, but it cannot be trusted: ${problem.why}. ${problem.remedy}; or name the server with --url, and its token with --token-file.`,
    { folder },
  );
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

/** By the real paths that the system shows, so a link in the folder to a file that some process has open does not count. */
function hasDataOpen(folder: string, pid: number): boolean {
  const process = `/proc/${pid}`;
  const data = join(realpathSync(folder), DATA_FILE);
  try {
    const [, uid] = /^Uid:\s+(\d+)/m.exec(readFileSync(`${process}/status`, "utf8")) ?? [];
    const isKnown = isOurs({ uid: Number(uid) }) || Number(uid) === statSync(folder).uid;
    const names = readdirSync(`${process}/fd`).map((fd) => linkTarget(`${process}/fd/${fd}`));
    // A server still serves a file that was removed.
    return isKnown && names.some((name) => name === data || name === `${data} (deleted)`);
  } catch {
    return false;
  }
}

/** `undefined` for a descriptor that was closed meanwhile. */
function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** A sentence for the log of a server on a folder that others can tamper with, or `undefined`. */
export function folderWarning(folder: string): string | undefined {
  const problem = folderTrustProblem(folder);
  if (problem === undefined) return undefined;
  return `The data folder is open to others: ${problem.why}. ${problem.remedy}.`;
}

/** Why others could tamper with a folder's files; `undefined` when only this user and root can. */
export function folderTrustProblem(folder: string): TrustProblem | undefined {
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

function fileTrustProblem(folder: string, file: Pick<Stats, "uid" | "mode">): TrustProblem | undefined {
  const remedy = `Remove ${ownerFileOf(folder)} and start the server again`;
  const isTrustedUser = isOurs(file) || (isRoot() && file.uid === statSync(folder).uid);
  if (!isTrustedUser) return { why: `it belongs to another user (${file.uid})`, remedy };
  return othersMayWrite(file) ? { why: "other users may write to it", remedy } : undefined;
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}
