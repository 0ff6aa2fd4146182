import { tmpdir } from "node:os";
import { commandLine } from "./command-line.ts";
import type { Outcome } from "./program.ts";

/** A command line, with variables that it alone is to see. */
export type CommandLine =
  | readonly string[]
  | readonly [words: readonly string[], env: Record<string, string>];

/** Runs command lines one after the other, as `commandLine` does each. */
export function runMany(
  commands: readonly CommandLine[],
  options: { readonly cwd?: string; readonly env?: Record<string, string> } = {},
): Promise<Outcome[]> {
  const { run } = commandLine(options.cwd ?? tmpdir(), options.env ?? {});
  return Promise.all(
    commands.map((line) => {
      const [words, env] = isBare(line) ? [line, {}] : line;
      return run(words, { env });
    }),
  );
}

function isBare(line: CommandLine): line is readonly string[] {
  return !Array.isArray(line[0]);
}
