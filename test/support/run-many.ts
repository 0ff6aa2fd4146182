import { tmpdir } from "node:os";
import { runHosted } from "./command-host.ts";
import type { Outcome } from "./program.ts";

/** A command line, with variables that it alone is to see. */
export type CommandLine =
  | readonly string[]
  | readonly [words: readonly string[], env: Record<string, string>];

/** Runs command lines one after the other, all of them in the process that takes a file's commands. */
export function runMany(
  commands: readonly CommandLine[],
  options: { readonly cwd?: string; readonly env?: Record<string, string> } = {},
): Promise<Outcome[]> {
  const { cwd = tmpdir(), env = {} } = options;
  return Promise.all(
    commands.map((line) => {
      const [words, own] = isBare(line) ? [line, {}] : line;
      return runHosted(words, { cwd, env: { ...env, ...own } });
    }),
  );
}

function isBare(line: CommandLine): line is readonly string[] {
  return !Array.isArray(line[0]);
}
