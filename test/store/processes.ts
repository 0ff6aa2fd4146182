import { type ChildProcess, spawn, spawnSync, type StdioOptions } from "node:child_process";
import { getCompileCacheDir } from "node:module";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const at = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

/** With the code kept that others have stripped and compiled: these programs are started often, from source. */
const env = { ...process.env, NODE_COMPILE_CACHE: getCompileCacheDir() };

/** Runs statements on a data file from another process, as any program with SQLite could, and throws as it failed. */
export function sqlElsewhere(path: string, ...statements: string[]): void {
  const command = [at("raw-child.ts"), path, ...statements];
  const { stderr, status } = spawnSync(process.execPath, command, { env, encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
}

/** Whether strace may trace here. */
export function canTrace(): boolean {
  return spawnSync("strace", ["-qq", "-o", "/dev/null", "-e", "inject=link:error=EIO", "true"]).status === 0;
}

/** Runs one of this folder's programs to its end, under a strace that does `inject` to its calls. */
export function runTraced(
  file: string,
  args: readonly string[],
  inject: string,
): { signal: NodeJS.Signals | null; status: number | null } {
  const calls = inject.slice(0, inject.indexOf(":"));
  const trace = ["-f", "-qq", "-o", "/dev/null", "-e", `trace=${calls}`, "-e", `inject=${inject}`];
  return spawnSync("strace", [...trace, process.execPath, at(file), ...args], { env, input: "" });
}

export interface Child {
  readonly process: ChildProcess;
  /** The next line it prints. */
  line(): Promise<string>;
  /** Resolves when it is gone and its output is read. */
  ended(): Promise<number | null>;
}

/** Starts one of this folder's programs, after a line of shell in the same process if that is there. */
export function startChild(file: string, args: readonly string[], { shell }: { shell?: string } = {}): Child {
  const command = [process.execPath, at(file), ...args];
  const stdio: StdioOptions = ["pipe", "pipe", "ignore"];
  const [program = "", ...rest] =
    shell === undefined ? command : ["bash", "-c", `${shell}; exec "$@"`, "bash", ...command];
  const child = spawn(program, rest, { stdio, env });
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  const ended = new Promise<number | null>((resolve) => child.on("close", (code) => resolve(code)));
  return {
    process: child,
    line: async () => {
      const { done, value } = await lines.next();
      if (done === true) throw new Error("it ended without another line");
      return value;
    },
    ended: () => ended,
  };
}
