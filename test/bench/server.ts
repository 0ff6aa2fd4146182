import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { readOwner } from "../../src/runtime/owner-file.ts";
import { cleanEnv, PROGRAM } from "../support/program.ts";
import { type Child, childOf } from "./child.ts";
import { plainProbe } from "./plain-probe.ts";
import type { ProbeCalls } from "./probe.ts";

export interface ServerPlace {
  /** Its data folder. */
  readonly folder: string;
  readonly configFile: string;
  /** Where its log goes. */
  readonly logFile: string;
  /** Where Node keeps compiled code, so that a run leaves nothing behind and still starts as an installed program does. */
  readonly compileCache: string;
  /** The address of the database that has the data in the folder's place. */
  readonly database?: string;
}

/** `evreg serve` as installed, on any free port of loopback. */
export interface BenchServer {
  readonly place: ServerPlace;
  readonly port: number;
  readonly token: string;
  readonly child: Child<ProbeCalls>;
  /** One request with the admin token; answers the parsed body. Anything but a success throws. */
  api<T>(method: "GET" | "POST" | "PUT", path: string, body?: unknown): Promise<T>;
  /** Stops it in order. */
  stop(): Promise<void>;
}

/** @param options `isProbed`: whether the probe is loaded before it, which its `child` is asked through */
export async function startServer(
  place: ServerPlace,
  { isProbed = true }: { readonly isProbed?: boolean } = {},
): Promise<BenchServer> {
  const { folder, configFile, compileCache, database } = place;
  const log = openSync(place.logFile, "a");
  const probe = isProbed ? ["--import", plainProbe(join(dirname(compileCache), "probe"))] : [];
  const serve = [PROGRAM, "serve", "--data", folder, "--port", "0", "--config", configFile];
  const child = childOf<ProbeCalls>([...probe, ...serve], {
    stdio: ["ignore", log, log, ...(isProbed ? (["ipc"] as const) : [])],
    env: cleanEnv({
      NODE_COMPILE_CACHE: compileCache,
      ...(database === undefined ? {} : { EVREG_DATABASE_URL: database }),
    }),
  });
  closeSync(log);
  const url = await announced(place, child);
  // The first start left it in the folder. Further nodes on a database have none, and need none of their own.
  const tokenFile = join(folder, "token");
  const token = existsSync(tokenFile) ? readFileSync(tokenFile, "utf8").trim() : "";
  return {
    place,
    port: Number(new URL(url).port),
    token,
    child,
    api: (method, path, body) => request(url, token, method, path, body),
    stop: () => child.end("SIGTERM"),
  };
}

/** The owner file is complete once it names the process and an address. */
async function announced({ folder, logFile }: ServerPlace, child: Child<ProbeCalls>): Promise<string> {
  for (;;) {
    const owner = readOwner(folder);
    if (owner?.pid === child.pid && owner.url !== undefined) return owner.url;
    if (child.process.exitCode !== null) {
      throw new Error(`evreg serve did not start:\n${readFileSync(logFile, "utf8").slice(-2_000)}`);
    }
    await pause(10);
  }
}

async function request<T>(
  url: string,
  token: string,
  method: string,
  path: string,
  body: unknown,
): Promise<T> {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path} was answered with ${answer.status}: ${text}`);
  return JSON.parse(text) as T;
}
