import { type ChildProcess, spawn, type StdioOptions } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { AnswerMessage, CallMessage, CallTable } from "./calls.ts";

/** A process of the benchmark and its calls. */
export interface Child<C extends CallTable> {
  readonly pid: number;
  readonly process: ChildProcess;
  /** Rejects with the other side's error, or when the process ends before it has answered. */
  call<N extends keyof C & string>(
    name: N,
    ...input: Parameters<C[N]>[0] extends undefined ? [] : [Parameters<C[N]>[0]]
  ): Promise<Awaited<ReturnType<C[N]>>>;
  /** Sends the signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<void>;
}

const running = new Set<ChildProcess>();

/** Ends every process that was started here, at once. */
export function killAll(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** Ends those that are not to be kept, and waits until they have ended. */
export async function endOthers(kept: readonly ChildProcess[]): Promise<void> {
  const others = [...running].filter((child) => !kept.includes(child));
  const ended = others.map((child) => once(child, "exit"));
  for (const child of others) child.kill("SIGKILL");
  await Promise.all(ended);
}

/** Starts one of the programs beside this file. */
export function startChild<C extends CallTable>(file: string): Child<C> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  return childOf<C>([path], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
}

/** Starts Node with these arguments; one that is to be called has an ipc channel in `stdio`. */
export function childOf<C extends CallTable>(
  args: readonly string[],
  options: { stdio: StdioOptions; env?: NodeJS.ProcessEnv; cwd?: string },
): Child<C> {
  const child = spawn(process.execPath, args, options);
  running.add(child);
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  let lastId = 0;
  const ended = once(child, "exit");
  child.once("exit", (code, signal) => {
    running.delete(child);
    const how = new Error(`${args.join(" ")} ended with ${code ?? signal}.`);
    for (const { reject } of waiting.values()) reject(how);
    waiting.clear();
  });
  child.on("message", (message: AnswerMessage) => {
    const call = waiting.get(message.id);
    waiting.delete(message.id);
    if ("error" in message) call?.reject(new Error(message.error));
    else call?.resolve(message.value);
  });
  return {
    pid: child.pid ?? 0,
    process: child,
    call(name, ...input) {
      lastId += 1;
      const id = lastId;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
        child.send({ id, call: name, input: input[0] } satisfies CallMessage, (error) => {
          if (error === null) return;
          waiting.delete(id);
          reject(error);
        });
      });
    },
    async end(signal) {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      await ended;
    },
  };
}
