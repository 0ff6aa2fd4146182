import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { EvregError } from "../domain/error.ts";
import { type Owner, ownerFileOf, type WrittenOwner } from "./owner-file.ts";
import { isOurs, othersMayWrite } from "./ownership.ts";

/** Why the files of a folder may be anybody's word, and what to do about it; both as parts of a sentence. */
export interface Doubt {
  readonly why: string;
  readonly remedy: string;
}

/**
 * The owner of a data folder decides where tokens go, so its word is only taken when nobody but this user and root can
 * have written it: neither file nor folder belongs to another user or may be written by one.
 *
 * Root acts on other users' folders as well (`sudo`). The word of such a folder's own user is then taken, but he gets
 * no secret but his own: see the answer.
 *
 * @returns the user who wrote it, where that is neither this one nor root
 * @throws EvregError `usage` when it cannot be trusted
 */
export function trustOwner(folder: string, { uid, mode }: WrittenOwner): number | undefined {
  const path = ownerFileOf(folder);
  const doubt = folderDoubt(folder) ?? doubtOfFile(path, { uid, mode }, folder);
  if (doubt === undefined) return isOurs({ uid }) ? undefined : uid;
  throw new EvregError(
    "usage",
    `${path} says where the server on this data folder is, but it cannot be trusted: ${doubt.why}. ${doubt.remedy}; or name the server with --url, and its token with --token-file.`,
    { folder },
  );
}

/**
 * Refuses the word of a folder that came from elsewhere, as with a cloned repository: its files are this user's then, and
 * name whatever process and address their author liked. What no file can bring about is that a process of this user's has
 * the folder's data file open. Where the system does not show what a process has open, the word is taken.
 * @throws EvregError `usage`
 */
export function mustHaveDataOpen(folder: string, { pid, url = "" }: Owner): void {
  if (!existsSync("/proc/self/fd") || hasDataOpen(folder, pid)) return;
  throw new EvregError(
    "usage",
    `Only ${ownerFileOf(folder)} names the server ${url}, and evreg cannot see that its process (${pid}) has the data of this folder open. A file that was found here may be anybody's, so nothing was sent there. If that server is meant, name it with --url or EVREG_URL, or the folder with --data or EVREG_DATA; otherwise remove that file.`,
    { folder },
  );
}

/** By the names the system tells, which are real paths: a link in the folder to what some process has open does not count. */
function hasDataOpen(folder: string, pid: number): boolean {
  const process = `/proc/${pid}`;
  const data = join(realpathSync(folder), "evreg.db");
  try {
    const [, uid] = /^Uid:\s+(\d+)/m.exec(readFileSync(`${process}/status`, "utf8")) ?? [];
    const isKnown = isOurs({ uid: Number(uid) }) || Number(uid) === statSync(folder).uid;
    const names = readdirSync(`${process}/fd`).map((fd) => linkTarget(`${process}/fd/${fd}`));
    // A file that was taken away while a server has it is still the one that it serves.
    return isKnown && names.some((name) => name === data || name === `${data} (deleted)`);
  } catch {
    return false;
  }
}

/** What was closed meanwhile leads nowhere. */
function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** A sentence for the log of a server on a folder that others can tamper with, or `undefined`. */
export function folderWarning(folder: string): string | undefined {
  const doubt = folderDoubt(folder);
  if (doubt === undefined) return undefined;
  return `The data folder is open to others: ${doubt.why}. ${doubt.remedy}.`;
}

/** Why others could tamper with a folder's files; `undefined` when only this user and root can. */
export function folderDoubt(folder: string): Doubt | undefined {
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
 * Refuses a link that leads root into another user's folder: whoever made it, or has its place by now, would have root
 * write there.
 * @throws EvregError `usage`
 */
export function mustNotLeadAway(folder: string): void {
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

function doubtOfFile(path: string, file: { uid: number; mode: number }, folder: string): Doubt | undefined {
  const remedy = `Remove ${path} and start the server again`;
  const known = isOurs(file) || (isRoot() && file.uid === statSync(folder).uid);
  if (!known) return { why: `it belongs to another user (${file.uid})`, remedy };
  return othersMayWrite(file) ? { why: "other users may write to it", remedy } : undefined;
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}
