import { existsSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { EvregError } from "../domain/error.ts";
import { TOKEN_FILE } from "./data-files.ts";
import { readOwned, replaceFile } from "./files.ts";
import {
  describeOwner,
  isOwnerAlive,
  ownerFileOf,
  readOwner,
  trustOwner,
  type WrittenOwner,
} from "./owner-file.ts";

/** A server that runs on a data folder. */
interface FolderServer {
  readonly url: string;
  /** The user who runs it, where root asks and that is another: that user must get no token but one of its own. */
  readonly otherUser: number | undefined;
}

/** Its process is alive, and may be late on a busy machine, or has just written its owner file and is still starting. */
const ANSWER_WITHIN_MS = 5_000;
const LOOK_EVERY_MS = 25;
const MAX_ANSWER_CHARACTERS = 64 * 1024;

/**
 * The server that runs on this data folder, or `undefined`. One that is starting has the folder before it has an address,
 * and is waited for. A trusted owner file that was written here has its address, on this machine. Its `/health` must answer with
 * the same instance, so that a token never goes to whoever took over its port.
 * @throws EvregError `usage` when the file names a server, but cannot be trusted; `unreachable` when the server
 * does not answer in time
 */
export async function findServer(
  folder: string,
  { answerWithinMs = ANSWER_WITHIN_MS }: { readonly answerWithinMs?: number } = {},
): Promise<FolderServer | undefined> {
  const startedMs = performance.now();
  let owner = readOwner(folder);
  while (isStarting(owner, answerWithinMs) && performance.now() - startedMs < answerWithinMs) {
    await sleep(LOOK_EVERY_MS);
    owner = readOwner(folder);
  }
  if (owner?.url === undefined || !owner.file.isOriginal || !isOwnerAlive(owner)) return undefined;
  const { url, pid } = owner;
  const otherUser = trustOwner(folder, owner);
  const { isLocalUrl } = await import("./local-addresses.ts");
  if (!isLocalUrl(url)) return undefined;
  const signal = AbortSignal.timeout(answerWithinMs);
  const instance = await instanceAt(url, signal).catch(() => {
    if (!signal.aborted) return undefined;
    // That process holds the folder, so without it a command would only find the folder in use.
    throw new EvregError(
      "unreachable",
      `The server on the data folder ${folder} did not answer within ${answerWithinMs / 1_000} s: ${describeOwner(owner)}. Nothing was done. Try again; if it hangs, stop that process. If that is no evreg, remove ${ownerFileOf(folder)}.`,
      { url, pid },
    );
  });
  return instance === owner.instance ? { url, otherUser } : undefined;
}

/**
 * Whether it is a server that may have an address soon: by the time of its file, so that one is waited for once however often it
 * is looked for, and not where it was killed long ago and another process has its number. That may also be this one, in another
 * container.
 */
function isStarting(owner: WrittenOwner | undefined, withinMs: number): boolean {
  if (owner?.command !== "serve" || owner.url !== undefined || owner.pid === process.pid) return false;
  return Math.abs(Date.now() - owner.file.mtimeMs) < withinMs && isOwnerAlive(owner);
}

/**
 * What the server at this address calls itself. An unavailable one answers 503 with the same members.
 *
 * By `node:http` without an agent, so that no proxy is used. It is not imported: for an import Node makes all its names, and
 * loads its own undici for three of them, 45 ms of a command's 370. Most folders have no server.
 */
async function instanceAt(url: string, signal: AbortSignal): Promise<unknown> {
  const { get } = process.getBuiltinModule("node:http");
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${url}/health`, { agent: false, signal }, resolve).on("error", reject);
  });
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) {
    text += chunk as string;
    if (text.length > MAX_ANSWER_CHARACTERS) throw new Error("The answer is too long.");
  }
  const body = JSON.parse(text) as { data?: { instance?: unknown } };
  return body.data?.instance;
}

const MAX_TOKEN_BYTES = 64 * 1024;

/** Its path, if this data folder has it. */
export function tokenFileOf(folder: string): string | undefined {
  const path = join(folder, TOKEN_FILE);
  return existsSync(path) ? path : undefined;
}

/** Writes the token, readable by its owner only; it survives a power cut once this is done. */
export function writeTokenFile(folder: string, token: string): void {
  replaceFile(join(folder, TOKEN_FILE), () => `${token}\n`, { durable: true });
}

/**
 * The token of this data folder, or `undefined` when there is none that may be read. A link is not followed, as it could lead
 * to another secret of this user.
 * @param user whose it must be; anybody's when not given
 */
export function readTokenFile(folder: string, user?: number): string | undefined {
  try {
    const { text, uid } = readOwned(join(folder, TOKEN_FILE), MAX_TOKEN_BYTES);
    const token = text.trim();
    return token === "" || (user !== undefined && uid !== user) ? undefined : token;
  } catch {
    return undefined;
  }
}
