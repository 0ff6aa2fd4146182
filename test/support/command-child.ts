import { readFileSync } from "node:fs";
import module from "node:module";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type * as Main from "../../src/cli/main.ts";
import type * as PluginModule from "../../src/cli/plugin.ts";
import type * as NextCommand from "../../src/cli/target/next-command.ts";
import type * as Commands from "../../src/commands/index.ts";
import type { CommandOutcome, CommandRequest } from "./command-host.ts";
import { bundleThread, startingFrom } from "./store-thread.ts";

// A process that runs command lines of the built program, one after the other, each in a folder and an environment of
// its own. What `main` adds to a command line is the end of the process.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
module.enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/compiled", import.meta.url)));
// The build: the commands oclif loads come from there, and must share its modules.
const built = (path: string): string => new URL(`../../dist/${path}`, import.meta.url).href;
await startThreadFromOneFile();
const { runCommandLine } = (await import(built("cli/main.js"))) as typeof Main;
const { installedPlugin } = (await import(built("cli/plugin.js"))) as typeof PluginModule;
const { COMMANDS } = (await import(built("commands/index.js"))) as typeof Commands;
const { setTarget: rememberTarget } = (await import(
  built("cli/target/next-command.js")
)) as typeof NextCommand;
const account = new URL("../../bin/unknown-account.js", import.meta.url).href;
const { setMissingAccount } = (await import(account)) as { setMissingAccount: () => void };

/** To load the sixty modules of the store's thread one by one takes a third of what a command on a data folder costs. */
async function startThreadFromOneFile(): Promise<void> {
  const { file } = await bundleThread("dist/store/libsql/worker.js");
  module.registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      if (url !== built("store/libsql/thread/worker-client.js")) return loaded;
      const source = readFileSync(new URL(url), "utf8");
      return { ...loaded, source: startingFrom(file, source, '"../worker.js"') };
    },
  });
}

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

async function perform({ words, cwd, env, input, columns }: CommandRequest): Promise<CommandOutcome> {
  process.chdir(cwd);
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
  setMissingAccount();
  Object.defineProperty(process, "stdin", { value: stdinOf(input), configurable: true });
  // A process begins knowing of no other command's target.
  rememberTarget({});
  for (const stream of [process.stdout, process.stderr]) {
    Object.assign(stream, { isTTY: columns !== undefined, columns, getColorDepth: () => 1 });
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
