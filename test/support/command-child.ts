import module from "node:module";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import threads, { type WorkerOptions } from "node:worker_threads";
import type * as Main from "../../src/cli/main.ts";
import type * as PluginModule from "../../src/cli/plugin.ts";
import type * as Commands from "../../src/commands/index.ts";
import type { CommandOutcome, CommandRequest } from "./command-host.ts";
import { Worker as PooledWorker } from "./thread-pool.ts";
import { scriptForPool } from "./thread-script.ts";

// A process that runs command lines of the built program, one after the other, each in a folder and an environment of
// its own. What `main` adds to a command line is the end of the process.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
module.enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/compiled", import.meta.url)));
const built = (name: string): string => new URL(`../../dist/program/${name}.js`, import.meta.url).href;

// A command on a data folder would spend nine tenths of its time on a thread for the store.
const scripts = new Map<string, URL>();
for (const name of ["store-thread", "postgres-thread", "move-thread"]) {
  scripts.set(built(name), await scriptForPool(new URL(built(name))));
}
Object.assign(threads, {
  Worker: function PooledWhereBuilt(script: URL, options: WorkerOptions) {
    return PooledWorker(scripts.get(script.href) ?? script, options);
  },
});
module.syncBuiltinESMExports();

const { runCommandLine } = (await import(built("main"))) as typeof Main;
const { installedPlugin } = (await import(built("plugin"))) as typeof PluginModule;
const { COMMANDS } = (await import(built("commands"))) as typeof Commands;
const account = new URL("../../bin/unknown-account.js", import.meta.url).href;
const { setMissingAccount } = (await import(account)) as { setMissingAccount: () => void };

/** A pipe takes so much at a time. */
const PIPE_BYTES = 64 * 1024;

function stdinOf(input: Uint8Array): Readable {
  const stream = new Readable({ read() {} });
  for (let at = 0; at < input.length; at += PIPE_BYTES) stream.push(input.subarray(at, at + PIPE_BYTES));
  stream.push(null);
  return stream;
}

/** Puts what is written to the stream into a list instead. */
function capture(stream: NodeJS.WriteStream): Buffer[] {
  const pieces: Buffer[] = [];
  stream.write = (piece: string | Uint8Array, ...rest: unknown[]): boolean => {
    pieces.push(Buffer.from(piece as string));
    const done = rest.at(-1);
    if (typeof done === "function") process.nextTick(done);
    return true;
  };
  return pieces;
}

async function perform({ words, cwd, env, input }: CommandRequest): Promise<CommandOutcome> {
  process.chdir(cwd);
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
  setMissingAccount();
  Object.defineProperty(process, "stdin", { value: stdinOf(input), configurable: true });
  for (const stream of [process.stdout, process.stderr]) {
    Object.assign(stream, { isTTY: false, columns: undefined, getColorDepth: () => 1 });
  }
  const [stdout, stderr] = [capture(process.stdout), capture(process.stderr)];
  const code = await runCommandLine(words, () => installedPlugin(ROOT, COMMANDS));
  return { code, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() };
}

process.on("message", (request: CommandRequest) => {
  void perform(request).then((outcome) => process.send!(outcome));
});
// Whoever started it is gone.
process.on("disconnect", () => process.exit());
