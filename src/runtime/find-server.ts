import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { EvregError } from "../domain/error.ts";
import { TOKEN_FILE } from "./data-files.ts";
import { readOwned, replaceFile, syncFolderOf } from "./files.ts";
import { describeOwner, assertDataOpen, ownerFileOf, readWrittenOwner, trustOwner } from "./owner-file.ts";

/** A server found on a data folder. */
interface FoundServer {
  readonly url: string;
  /** Where its first admin token is, if the folder has that file. */
  readonly tokenFile: string | undefined;
  /** For root, the user who runs it, if that is another: that user must get no token but one of its own. */
  readonly otherUser: number | undefined;
}

interface FindOptions {
  readonly answerWithinMs?: number;
  /** Whether the user named the folder. For one that was only found, see `assertDataOpen`. */
  readonly isNamed?: boolean;
}

/** Its process is alive, and may be late on a busy machine. */
const ANSWER_WITHIN_MS = 5_000;
const MAX_ANSWER_BYTES = 64 * 1024;

/**
 * The server that runs on this data folder, or `undefined`. A trusted owner file has its address, on this machine. Its
 * `/health` must answer with the same instance, so that a token never goes to whoever took over its port.
 * @throws EvregError `usage` when the file names a server, but cannot be trusted; `unreachable` when the server
 * does not answer in time
 */
export async function findServer(
  folder: string,
  { answerWithinMs = ANSWER_WITHIN_MS, isNamed = true }: FindOptions = {},
): Promise<FoundServer | undefined> {
  const written = readWrittenOwner(folder);
  const { owner } = written ?? {};
  if (written === undefined || owner?.url === undefined || !isAlive(owner.pid)) return undefined;
  const otherUser = trustOwner(folder, written);
  const { isLocalUrl } = await import("./local-addresses.ts");
  if (!isLocalUrl(owner.url)) return undefined;
  if (!isNamed) assertDataOpen(folder, owner);
  const signal = AbortSignal.timeout(answerWithinMs);
  const instance = await instanceAt(owner.url, signal).catch(() => {
    if (!signal.aborted) return undefined;
    // That process holds the folder, so without it a command would only find the folder in use.
    throw new EvregError(
      "unreachable",
      `The server on the data folder ${folder} did not answer within ${answerWithinMs / 1_000} s: ${describeOwner(owner)}. Nothing was done. Try again; if it hangs, stop that process. If that is no evreg, remove ${ownerFileOf(folder)}.`,
      { url: owner.url ?? null, pid: owner.pid },
    );
  });
  if (instance !== owner.instance) return undefined;
  return { url: owner.url, tokenFile: tokenFileOf(folder), otherUser };
}

/** Another user's process cannot be signalled, yet is there. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** An unavailable server answers 503 with the same members; it is found all the same. */
async function instanceAt(url: string, signal: AbortSignal): Promise<unknown> {
  const body = JSON.parse(await fetchText(`${url}/health`, signal)) as { data?: { instance?: unknown } };
  return body.data?.instance;
}

/**
 * `node:http` without an agent: no proxy is used. Not imported: for an import Node makes all its names, and loads its own
 * undici for three of them, 45 ms of a command's 370. Most folders have no server.
 */
function fetchText(url: string, signal: AbortSignal): Promise<string> {
  const { get } = process.getBuiltinModule("node:http");
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false, signal }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.byteLength;
        if (bytes > MAX_ANSWER_BYTES) response.destroy(new Error("The answer is too long."));
        else chunks.push(chunk);
      });
      response.on("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
      response.on("error", reject);
    });
    request.on("error", reject);
  });
}

const MAX_BYTES = 64 * 1024;

/** Its path, if this data folder has it. */
export function tokenFileOf(folder: string): string | undefined {
  const path = join(folder, TOKEN_FILE);
  return existsSync(path) ? path : undefined;
}

/** Renames the file, if there is one: its token does not belong to this data any more. */
export function setTokenFileAside(folder: string, ending: string): string | null {
  const path = tokenFileOf(folder);
  if (path === undefined) return null;
  const aside = `${path}.${ending}`;
  renameSync(path, aside);
  syncFolderOf(path);
  return aside;
}

/** Writes the token, readable by its owner only; it survives a power cut once this is done. */
export function writeTokenFile(folder: string, token: string): string {
  const path = join(folder, TOKEN_FILE);
  replaceFile(path, `${token}\n`, { durable: true });
  return path;
}

/**
 * The token of this data folder, or `undefined` when there is none that may be read. A link is not followed, as it could lead
 * to another secret of this user.
 * @param user whose it must be; anybody's when not given
 */
export function readTokenFile(folder: string, user?: number): string | undefined {
  try {
    const { text, uid } = readOwned(join(folder, TOKEN_FILE), MAX_BYTES);
    const token = text.trim();
    return token === "" || (user !== undefined && uid !== user) ? undefined : token;
  } catch {
    return undefined;
  }
}
