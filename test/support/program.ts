import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { readOwner } from "../../src/runtime/owner-file.ts";

/** The installed entry, as a user runs it; `npm test` builds `dist` first. */
export const PROGRAM = fileURLToPath(new URL("../../bin/run.js", import.meta.url));

const { TEST_EXECUTABLE } = process.env;

/** The words that start what is tested: the installed entry, or the single executable with `vitest --mode exe`. */
export const STARTED_BY = TEST_EXECUTABLE ? [TEST_EXECUTABLE] : [process.execPath, PROGRAM];

/** Makes a copy of the build, which a test may change; answers the words that start it. */
export function copyOfBuild(copy: string): readonly string[] {
  const root = dirname(dirname(PROGRAM));
  for (const name of ["bin", "dist", "package.json", "oclif.manifest.json"]) {
    cpSync(join(root, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return [process.execPath, join(copy, "bin/run.js")];
}

/** The environment a test's program sees: nothing of the developer's own evreg settings. */
export function cleanEnv(extra: Record<string, string> = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(EVREG_|SERVICE_|STATE_DIRECTORY|VITEST|NODE_)/.test(name),
  );
  return { ...Object.fromEntries(kept), NO_COLOR: "1", ...extra };
}

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly input?: string | Uint8Array;
  /** A command that becomes the program, such as `env -i`, with its options. */
  readonly through?: readonly string[];
  /** Another program than the one that is tested. */
  readonly as?: readonly string[];
}

/** The words of a command; one text where none of them has a space in it. */
export type Line = string | readonly string[];

export function wordsOf(line: Line): readonly string[] {
  return typeof line === "string" ? line.split(" ") : line;
}

/** Runs one command of the real program to its end. */
export function runProgram(line: Line, options: RunOptions = {}): Promise<Outcome> {
  const { child, ended } = startCommand(line, options);
  child.stdin.end(options.input ?? "");
  return ended;
}

/** Starts one command of the real program, which a test goes on beside. Its stdin stays open. */
export function startCommand(line: Line, { cwd, env, through = [], as }: RunOptions = {}) {
  const [command = "", ...rest] = [...through, ...(as ?? STARTED_BY), ...wordsOf(line)];
  const child = spawn(command, rest, { cwd, env: cleanEnv(env) });
  child.stdin.on("error", () => undefined);
  return { child, ...printedBy(child) };
}

/** What a program has printed so far, and has when it ends. */
function printedBy(child: ChildProcess) {
  const [stdout, stderr]: Buffer[][] = [[], []];
  child.stdout!.on("data", (chunk: Buffer) => stdout!.push(chunk));
  child.stderr!.on("data", (chunk: Buffer) => stderr!.push(chunk));
  const soFar = () => ({
    stdout: Buffer.concat(stdout!).toString(),
    stderr: Buffer.concat(stderr!).toString(),
  });
  const ended = new Promise<Outcome>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, ...soFar() }));
  });
  return { soFar, ended };
}

export interface RunningProgram {
  readonly url: string;
  readonly child: ChildProcess;
  /** Resolves when it is gone, whoever ended it. */
  readonly ended: Promise<Outcome>;
  /** Sends the signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<Outcome>;
}

/** One that may not answer yet. */
export interface LaunchedProgram extends Omit<RunningProgram, "url"> {
  /** Its address, once announced; rejects when it ends before. */
  readonly ready: Promise<string>;
}

/**
 * Starts `evreg serve` on `folder`.
 * @param through a command that becomes the program, such as `prlimit`, with its options
 * @param as another program than the one that is tested
 */
export function launchProgram(
  folder: string,
  args: readonly string[] = [],
  env: Record<string, string> = {},
  through: readonly string[] = [],
  as: readonly string[] = STARTED_BY,
): LaunchedProgram {
  const anyPort = args.includes("--port") ? [] : ["--port", "0"];
  const served = [...as, "serve", "--data", folder, ...anyPort, ...args];
  const [command = "", ...rest] = [...through, ...served];
  // A folder that the program is to make is no place to start it in.
  const cwd = existsSync(folder) ? folder : tmpdir();
  const child = spawn(command, rest, { cwd, env: cleanEnv(env), stdio: ["ignore", "pipe", "pipe"] });
  const { ended } = printedBy(child);
  const ready = Promise.race([
    announced(folder, child),
    ended.then((outcome) => Promise.reject(neverStarted(outcome))),
  ]);
  const end = (signal: NodeJS.Signals): Promise<Outcome> => {
    child.kill(signal);
    return ended;
  };
  return { child, ready, ended, end };
}

/** Starts `evreg serve` on `folder` and waits until it has announced its address. */
export async function startProgram(...given: Parameters<typeof launchProgram>): Promise<RunningProgram> {
  const { ready, ...launched } = launchProgram(...given);
  return { ...launched, url: await ready };
}

function neverStarted(outcome: Outcome): Error {
  return new Error(`evreg serve ended with ${outcome.code}:\n${outcome.stdout}${outcome.stderr}`);
}

/** The owner file is the product's own announcement; it is complete once it names this process and an address. */
async function announced(folder: string, child: ChildProcess): Promise<string> {
  for (;;) {
    const owner = readOwner(folder);
    if (owner?.pid === child.pid && owner?.url !== undefined) return owner.url;
    if (child.exitCode !== null || child.signalCode !== null) return new Promise(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** An empty folder for one test, removed by `remove`. */
export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "evreg-test-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
