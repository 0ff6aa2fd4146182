import { rmSync } from "node:fs";
import { join } from "node:path";
import { EvregError } from "../domain/error.ts";
import type { Logger } from "./logger.ts";
import { readOwned } from "./ownership.ts";
import { replaceFile } from "./replace-file.ts";

/**
 * Who holds the data folder. Only a hint for people and for commands that look for a running server: the store's lock,
 * which the system frees at a crash, decides; a file left by a killed process is harmless.
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

const OWNER_FILE = "owner.json";
const MAX_BYTES = 64 * 1024;

/** An owner with who wrote its file. */
export interface WrittenOwner {
  readonly owner: Owner;
  readonly uid: number;
  /** The file's permissions, as `Stats.mode`. */
  readonly mode: number;
}

/**
 * The last owner that wrote its file, or `undefined` when there is none that can be read. Anybody who may write to the
 * folder may have made it up: good for telling a person, not for trusting.
 */
export function readOwner(folder: string): Owner | undefined {
  return readWrittenOwner(folder)?.owner;
}

/** The same, with what it takes to find out whether it can be trusted (see `trusted-owner.ts`). */
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

/**
 * Replaces the file in one step, readable by its owner only.
 * @throws EvregError `unavailable` when the folder does not take it
 */
export function writeOwner(folder: string, owner: Owner): void {
  try {
    replaceFile(ownerFileOf(folder), `${JSON.stringify(owner)}\n`, { durable: false });
  } catch (error) {
    throw unwritable(folder, error);
  }
}

/** The same for whoever can do without: that there is no room for it is only logged, as reading needs none. */
export function noteOwner(folder: string, owner: Owner, logger: Logger): void {
  try {
    writeOwner(folder, owner);
  } catch (error) {
    if (!isForRoom(error)) throw error;
    logger.warn(
      { folder },
      "The disk of the data folder is full, so others cannot be told who has the folder.",
    );
  }
}

/** Removes the file if it is still this instance's. */
export function removeOwner(folder: string, instance: string): void {
  if (readOwner(folder)?.instance === instance) rmSync(join(folder, OWNER_FILE), { force: true });
}

/** For a message: `evreg serve (process 4711, http://127.0.0.1:7480, since …)`. */
export function describeOwner(owner: Owner): string {
  const address = owner.url === undefined ? "" : ` ${owner.url},`;
  return `evreg ${owner.command} (process ${owner.pid},${address} since ${owner.started_at})`;
}

function isOwner(value: unknown): value is Owner {
  if (typeof value !== "object" || value === null) return false;
  const owner = value as Record<string, unknown>;
  return (
    typeof owner["pid"] === "number" &&
    typeof owner["command"] === "string" &&
    typeof owner["instance"] === "string" &&
    typeof owner["started_at"] === "string" &&
    (owner["url"] === undefined || typeof owner["url"] === "string")
  );
}

function unwritable(folder: string, error: unknown): EvregError {
  const { code, message } = error as NodeJS.ErrnoException;
  const say = NO_ROOM.has(code ?? "")
    ? "the disk is full; make room"
    : `the system says: ${message}; make it writable`;
  return new EvregError(
    "unavailable",
    `The file ${OWNER_FILE} cannot be written to the data folder ${folder}: ${say}, or give another folder with --data.`,
    { folder },
    { cause: error },
  );
}

/** Also where the system limits what one user may store. */
const NO_ROOM = new Set(["ENOSPC", "EDQUOT"]);

function isForRoom(error: unknown): boolean {
  const { cause } = error as EvregError;
  return NO_ROOM.has((cause as NodeJS.ErrnoException | undefined)?.code ?? "");
}
