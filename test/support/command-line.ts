import { expect } from "vitest";
import { runHosted } from "./command-host.ts";
import { runProgram, type Outcome } from "./program.ts";

export interface CommandOptions {
  readonly input?: string | Uint8Array;
  readonly env?: Record<string, string>;
  /** Its output goes to a terminal of so many columns; for the build only. */
  readonly columns?: number;
}

/**
 * Runs commands of the real program in one folder, with one environment: of the build in a process that takes one after
 * the other, of the single executable in a process for each. A server always has its own, as its log goes past the streams.
 */
export function commandLine(cwd: string, env: Record<string, string>) {
  const run = (words: readonly string[], options: CommandOptions = {}): Promise<Outcome> => {
    const isAlone = Boolean(process.env["TEST_EXECUTABLE"]) || words[0] === "serve";
    const all = { cwd, ...options, env: { ...env, ...options.env } };
    return isAlone ? runProgram(words, all) : runHosted(words, all);
  };
  /** The document of `--json` of a command that must succeed, with nothing else said. */
  // oxlint-disable-next-line no-unnecessary-type-parameters -- the caller knows what it asked for
  const json = async <T = Record<string, unknown>>(
    words: readonly string[],
    options: CommandOptions = {},
  ): Promise<{ data: T; meta?: Record<string, unknown> }> => {
    const outcome = await run([...words, "--json"], options);
    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    return JSON.parse(outcome.stdout) as { data: T };
  };
  return { run, json };
}
