import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

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

/** The last owner that wrote its file, or `undefined` when there is none that can be read. */
export function readOwner(folder: string): Owner | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(join(folder, OWNER_FILE), "utf8"));
    return isOwner(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Replaces the file in one step, readable by its owner only. */
export function writeOwner(folder: string, owner: Owner): void {
  const path = join(folder, OWNER_FILE);
  const temporary = `${path}.${owner.pid}`;
  writeFileSync(temporary, `${JSON.stringify(owner)}\n`, { mode: 0o600 });
  renameSync(temporary, path);
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
