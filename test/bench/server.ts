import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { readOwner } from "../../src/runtime/owner-file.ts";
import { cleanEnv, PROGRAM } from "../support/program.ts";
import { type Child, childOf } from "./child.ts";
import type { ProbeCalls } from "./probe.ts";

const PROBE_FILES = ["probe", "calls", "cpu-share"];

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

type Method = "GET" | "POST" | "PUT";

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** `evreg serve` as installed, on any free port of loopback. */
export interface BenchServer {
  readonly place: ServerPlace;
  readonly port: number;
  readonly token: string;
  readonly child: Child<ProbeCalls>;
  /** One request with the admin token. Any other status throws; without any given, anything but a success. */
  send(method: Method, path: string, body?: unknown, ...statuses: number[]): Promise<Answer>;
  /** The same, with the parsed body of a success. */
  api<T>(method: Method, path: string, body?: unknown): Promise<T>;
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
  const send = async (
    method: Method,
    path: string,
    body?: unknown,
    ...statuses: number[]
  ): Promise<Answer> => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const { status, ok } = answer;
    const text = await answer.text();
    if (statuses.length === 0 ? ok : statuses.includes(status)) return { status, text };
    throw new Error(`${method} ${path} was answered with ${status}: ${text.slice(0, 500)}`);
  };
  return {
    place,
    port: Number(new URL(url).port),
    token,
    child,
    send,
    api: async (method, path, body) => JSON.parse((await send(method, path, body)).text),
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

/**
 * The probe as plain JavaScript, in a folder that is made: what Node loads to take types out of a file itself would stay in
 * the server under test and weigh 15 MB of what is measured there. Answers the file to preload.
 */
function plainProbe(folder: string): string {
  mkdirSync(folder, { recursive: true });
  for (const name of PROBE_FILES) {
    const source = readFileSync(new URL(`${name}.ts`, import.meta.url), "utf8");
    const plain = stripTypeScriptTypes(source).replaceAll(/from "\.\/([\w-]+)\.ts"/g, 'from "./$1.mjs"');
    writeFileSync(join(folder, `${name}.mjs`), plain);
  }
  return join(folder, "probe.mjs");
}
