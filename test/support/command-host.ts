import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { cleanEnv, type Outcome } from "./program.ts";

/** One command line and all it sees of the world. */
export interface CommandRequest {
  readonly words: readonly string[];
  readonly cwd: string;
  /** All of it. */
  readonly env: Readonly<Record<string, string>>;
  /** What stdin holds. */
  readonly input: Uint8Array;
}

export type CommandOutcome = Outcome & { readonly code: number };

const CHILD = fileURLToPath(new URL("command-child.ts", import.meta.url));

let child: ChildProcess | undefined;
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a command line of the built program in a process that has run others: it has loaded all it needs, so that a
 * command costs some hundredths of a second instead of a whole start. They take turns. For what is said of the process
 * itself (signals, pipes, terminals, how it ends) there is `runProgram`.
 */
export function runHosted(
  words: readonly string[],
  options: Omit<CommandRequest, "words" | "env" | "input"> & {
    env: Record<string, string>;
    input?: string | Uint8Array;
  },
): Promise<Outcome> {
  const input = Buffer.from(options.input ?? "");
  const env = cleanEnv(options.env) as Record<string, string>;
  const outcome = last.then(() => perform({ ...options, words, env, input }));
  last = outcome.catch(() => undefined);
  return outcome;
}

function perform(request: CommandRequest): Promise<CommandOutcome> {
  const host = (child ??= start());
  hold(host, true);
  return new Promise<CommandOutcome>((resolve, reject) => {
    const gone = (code: number | null): void => {
      child = undefined;
      reject(new Error(`evreg ${request.words.join(" ")}: its process ended with ${code}`));
    };
    host.once("close", gone);
    host.once("message", (outcome: CommandOutcome) => {
      host.off("close", gone);
      resolve(outcome);
    });
    host.send(request);
  }).finally(() => hold(host, false));
}

function start(): ChildProcess {
  // What is written past the streams it captures belongs to a fault.
  return spawn(process.execPath, [CHILD], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    serialization: "advanced",
    env: cleanEnv(),
  });
}

/** While it has nothing to do, it keeps nobody waiting; it ends when its parent does. */
function hold(host: ChildProcess, isBusy: boolean): void {
  for (const part of [host, host.channel]) {
    if (isBusy) part?.ref();
    else part?.unref();
  }
}
