import { Config, type Interfaces, run, settings } from "@oclif/core";
import { asEvregError, EvregError } from "../domain/error.ts";
import { versionText } from "../runtime/build.ts";
import { listenForSigint } from "./io/interruption.ts";
import { writeOut } from "./io/output.ts";
import { isServer, logCrash, reportError } from "./report-error.ts";
import { setTarget } from "./target/next-command.ts";
import {
  beforeDashes,
  EXIT,
  flagsFirst,
  asUsageError,
  unknownCommand,
  unknownFlagAmong,
} from "./usage-errors.ts";

/** The whole program: runs the command line and leaves with its exit code. @param commands loads the package's commands */
export async function main(
  argv: readonly string[],
  commands: () => Promise<Interfaces.Plugin>,
): Promise<never> {
  listenForSigint();
  // Each write to stdout reports its own failure; oclif's listener would throw it a second time, past every handler. On
  // stderr, a reader that has gone is no reason to fail.
  process.stdout.removeAllListeners("error");
  process.stdout.on("error", () => undefined);
  process.stderr.on("error", () => undefined);
  process.on("uncaughtException", (error) => process.exit(crashCodeOf(error, argv)));
  const code = await runCommandLine(argv, commands);
  await flush();
  // An empty event loop is not waited for: a pipe on stdin that nobody closes would keep a finished command alive.
  process.exit(code);
}

/**
 * Runs one command line to its end, reports a failure on stderr, and answers the exit code.
 * @public tests call it in the build
 */
export async function runCommandLine(
  typed: readonly string[],
  commands: () => Promise<Interfaces.Plugin>,
): Promise<number> {
  const argv = typed[0] === "help" ? [...typed.slice(1), "--help"] : typed;
  let config: Config | undefined;
  setTarget({});
  try {
    config = await loadConfig(await commands());
    if (argv[0] === "--version" || argv[0] === "-v") {
      // oclif knows nothing of the build.
      await writeOut(`${versionText(config.userAgent)}\n`);
      return EXIT.done;
    }
    const result = await run([...argv], config);
    return typeof result === "number" ? result : EXIT.done;
  } catch (error) {
    return exitCodeOf(error, argv, config);
  }
}

function loadConfig(plugin: Interfaces.Plugin): Promise<Config> {
  // oclif would look for ts-node and read tsconfig.json whenever NODE_ENV says test or development.
  settings.enableAutoTranspile = false;
  const plugins = new Map([[plugin.name, plugin]]);
  return Config.load({ root: plugin.root, plugins, userPlugins: false, devPlugins: false });
}

function exitCodeOf(error: unknown, argv: readonly string[], config: Config | undefined): number {
  if (isExit(error)) return error.oclif.exit;
  if (isClosedPipe(error)) return EXIT.done;
  const failure = unknownSubject(error, config) ?? wrongLine(error, argv, config) ?? error;
  if (asEvregError(failure).code === "internal") logCrash(failure);
  return reportError(failure, { json: wantsJson(argv), command: commandOf(argv, config) });
}

/** What oclif could not parse. An unknown flag is reported first: it may have caused the other mistakes. */
function wrongLine(
  error: unknown,
  argv: readonly string[],
  config: Config | undefined,
): EvregError | undefined {
  const usage = asUsageError(error);
  if (usage === undefined && !(error instanceof EvregError && error.code === "usage")) return undefined;
  const command = config?.findCommand((commandOf(argv, config) ?? "").replaceAll(" ", ":"));
  return (command === undefined ? undefined : unknownFlagAmong(argv, command.flags)) ?? usage;
}

/** What nobody caught. It may have left things half done, so a server ends as well, and never as if all were well. */
function crashCodeOf(error: unknown, argv: readonly string[]): number {
  if (!isServer()) return exitCodeOf(error, argv, undefined);
  const fault = new EvregError("internal", "evreg failed by a fault of its own.", {}, { cause: error });
  const logged = logCrash(error);
  return reportError(fault, { json: false, command: undefined, ...(logged ? {} : { stack: true }) });
}

/** `evreg … | head` ends its reader early; that is no failure. */
function isClosedPipe(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === "EPIPE";
}

function isExit(error: unknown): error is { oclif: { exit: number } } {
  return error instanceof Error && (error as { code?: string }).code === "EEXIT";
}

/** oclif's complaints about words that are no command, and that it has no help for some. */
function unknownSubject(error: unknown, config: Config | undefined): EvregError | undefined {
  if (config === undefined || !(error instanceof Error) || !("oclif" in error)) return undefined;
  const subject = /^command (.+) not found\.?$/is.exec(error.message)?.[1];
  if (subject === undefined) return undefined;
  return subject.startsWith("-") ? flagsFirst() : unknownCommand(subject, config);
}

/** Read from the words themselves: a command line that could not be parsed must fail in the requested form too. */
function wantsJson(argv: readonly string[]): boolean {
  return beforeDashes(argv).some((word, at) => {
    const output = word === "--output" ? argv[at + 1] : word.replace(/^--output=/, "");
    return word === "--json" || (word.startsWith("--output") && (output === "json" || output === "jsonl"));
  });
}

/** The words of the command, such as `actions create`, or of a topic that has it not, for pointing to its help. */
function commandOf(argv: readonly string[], config: Config | undefined): string | undefined {
  const flag = argv.findIndex((word) => word.startsWith("-"));
  const words = flag === -1 ? argv : argv.slice(0, flag);
  for (let count = Math.min(2, words.length); count > 0; count -= 1) {
    if (config?.findCommand(words.slice(0, count).join(":"))) return words.slice(0, count).join(" ");
  }
  return config?.findTopic(words[0] ?? "")?.name;
}

/** How long the end of the process waits for a reader of stderr that takes nothing: it may be a log that has stopped. */
const MAX_FLUSH_MS = 1_000;

async function flush(): Promise<void> {
  await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
  await new Promise<void>((resolve) => {
    process.stderr.write("", () => resolve());
    setTimeout(resolve, MAX_FLUSH_MS);
  });
}
