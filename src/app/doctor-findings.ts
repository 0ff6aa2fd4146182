import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";
import type { Config } from "../config/keys.ts";
import { isLoopbackHost } from "../config/values.ts";
import { byteCount } from "../domain/formats.ts";
import { type Finding, fine, problem, warning } from "../domain/operations.ts";
import { versionText } from "../runtime/build.ts";
import { toIso } from "../runtime/clock.ts";
import { DATA_FILE } from "../runtime/data-files.ts";
import { sizeOf } from "../runtime/files.ts";
import { folderTrustProblem } from "../runtime/owner-file.ts";

const TOKEN_FILES = /^token(?:\.|$)/;
const DATA_FILES = /^evreg\.db(?:[.-]|$)/;
/** Less is soon full: a log that grows by a burst and a backup need as much. */
const LOW_BYTES = 512 * 1024 * 1024;
/** Below this the next burst may fill it. */
const FULL_BYTES = 64 * 1024 * 1024;
/** A disk that is small by intention has small bursts. With less than these shares of it free, it has little room, or is nearly full. */
const LOW_SHARE = 0.25;
const FULL_SHARE = 0.1;
/** With less, what the largest publish needs may not fit. */
const LEAST_BYTES = 4 * 1024 * 1024;

/**
 * What is known of a data folder without opening any of its files, which the process that has them open must not do
 * (see `store/libsql/files/data-folder.ts`).
 */
export function folderFindings(folder: string): readonly Finding[] {
  const found = [permissionsFinding(folder), ...readableFiles(folder), diskSpace(folder)];
  return existsSync(join(folder, DATA_FILE)) ? [...found, sizes(folder)] : found;
}

/** What is known of where the data are without reading them: a database has tools of its own for that. */
export function dataFindings({ data, database }: Pick<Config, "data" | "database">): readonly Finding[] {
  return database.url === undefined ? folderFindings(data) : [permissionsFinding(data)];
}

/** Who may write to the data folder. */
export function permissionsFinding(folder: string): Finding {
  try {
    accessSync(folder, constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === "EROFS" ? "its file system can only be read" : "this user has no permission";
    return problem("folder", `Nothing can be written to ${folder}: ${why}.`, "Make it writable.");
  }
  const trust = folderTrustProblem(folder);
  if (trust === undefined) return fine("folder", `${folder} can be written to by this user only.`);
  return warning("folder", `The data folder is open to others: ${trust.why}.`, `${trust.remedy}.`);
}

/** Made for their owner only; who copies or restores them by other means may have opened them. */
function readableFiles(folder: string): readonly Finding[] {
  if (process.platform === "win32") return [];
  // What others cannot enter they cannot read from; a token is reported all the same, as a copy has its mode elsewhere too.
  const isEntered = (modeOf(folder) & 0o011) !== 0;
  const open = readdirSync(folder)
    .filter((name) => TOKEN_FILES.test(name) || (isEntered && DATA_FILES.test(name)))
    .filter((name) => (modeOf(join(folder, name)) & 0o066) !== 0);
  if (open.length === 0) return [];
  const hasToken = open.some((name) => TOKEN_FILES.test(name));
  const known = hasToken
    ? " A token that others may know is replaced with `evreg tokens create` and `evreg tokens revoke`."
    : "";
  return [
    warning(
      "files",
      `Files of the data folder are open to other users by their permissions: ${open.join(", ")}.`,
      `Run: chmod 600 ${open.map((name) => join(folder, name)).join(" ")}.${known}`,
    ),
  ];
}

function diskSpace(folder: string): Finding {
  const { bavail, bsize, blocks } = statfsSync(folder);
  const room = {
    freeBytes: bavail * bsize,
    diskBytes: blocks * bsize,
    dataBytes: sizeOf(join(folder, DATA_FILE)),
  };
  return diskFinding(folder, room);
}

/** How full the disk of a data folder is. */
export function diskFinding(
  folder: string,
  {
    freeBytes: free,
    diskBytes,
    dataBytes,
  }: { readonly freeBytes: number; readonly diskBytes: number; readonly dataBytes: number },
): Finding {
  const sentence = `${byteCount(free)} of ${byteCount(diskBytes)} are free on the disk of ${folder}.`;
  const remedy =
    "Make room or move the folder to a larger disk; retention.events has old events removed. Without room nothing can be published.";
  const full = Math.max(LEAST_BYTES, Math.min(FULL_BYTES, diskBytes * FULL_SHARE));
  if (free < full) return problem("disk", sentence, remedy);
  // A backup is made beside the data.
  if (free < Math.min(LOW_BYTES, diskBytes * LOW_SHARE) || free < dataBytes)
    return warning("disk", sentence, remedy);
  return fine("disk", sentence);
}

function sizes(folder: string): Finding {
  const copies = readdirSync(folder).filter((name) => name.startsWith(`${DATA_FILE}.before-`));
  const size = (name: string): number => sizeOf(join(folder, name));
  const data = `The data file is ${byteCount(size(DATA_FILE))}, its log ${byteCount(size(`${DATA_FILE}-wal`))}`;
  if (copies.length === 0) return fine("size", `${data}.`);
  const bytes = copies.reduce((sum, name) => sum + size(name), 0);
  return warning(
    "size",
    `${data}; copies from an upgrade or a restore take ${byteCount(bytes)}: ${copies.join(", ")}.`,
    "Remove the copies once nobody wants to go back; they hold secrets as they were kept then.",
  );
}

function modeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
}

/** Whether other machines may reach it without TLS. */
export function transportFindings({ host, tls }: Pick<Config, "host" | "tls">): readonly Finding[] {
  if (isLoopbackHost(host) || tls.cert !== undefined) return [];
  return [
    warning(
      "transport",
      `At the address ${host} other machines reach the server without TLS: tokens, payloads and secrets cross the network as they are.`,
      "Set tls.cert and tls.key; or listen on 127.0.0.1 behind a proxy with TLS. Where only such a proxy reaches the address, neither is needed.",
    ),
  ];
}

const SOON_MS = 14 * 24 * 60 * 60_000;

/** What the doctor says of the certificate that a server proves itself with; nothing where it has none. */
export function certificateFindings(endsMs: number | undefined, nowMs: number): readonly Finding[] {
  return endsMs === undefined ? [] : [certificateFinding(endsMs, nowMs)];
}

function certificateFinding(endsMs: number, nowMs: number): Finding {
  const check = "certificate";
  const remedy = "Renew the files of tls.cert and tls.key, and send the server SIGHUP.";
  if (endsMs <= nowMs) return problem(check, `The certificate ended at ${toIso(endsMs)}.`, remedy);
  if (endsMs - nowMs <= SOON_MS) return warning(check, `The certificate ends at ${toIso(endsMs)}.`, remedy);
  return fine(check, `The certificate is valid until ${toIso(endsMs)}.`);
}

/** @param version of evreg */
export function programFinding(version: string): Finding {
  const { platform, arch, version: node } = process;
  return fine("program", `evreg ${versionText(version)} on Node ${node}, ${platform} ${release()}, ${arch}.`);
}
