import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, expect } from "vitest";
import { runHosted } from "./command-host.ts";
import { type Line, type Outcome, runProgram, temporaryFolder, wordsOf } from "./program.ts";

export interface CommandOptions {
  readonly input?: string | Uint8Array;
  readonly env?: Record<string, string>;
}

/** All that is printed, or a pattern of it; anything where neither is given. */
type Printed = string | RegExp | undefined;

/** A command line, and how it must end. */
export type Ending = readonly [
  line: Line,
  code: number,
  stdout?: Printed,
  stderr?: Printed,
  options?: CommandOptions,
];

/**
 * Runs commands of the real program in one folder, with one environment: of the build in a process that takes one after
 * the other, of the single executable in a process for each. A server always has its own, as its log goes past the streams.
 */
export function commandLine(cwd: string, env: Record<string, string>) {
  const run = (line: Line, options: CommandOptions = {}): Promise<Outcome> => {
    const words = wordsOf(line);
    const isAlone = Boolean(process.env["TEST_EXECUTABLE"]) || words[0] === "serve";
    const all = { cwd, ...options, env: { ...env, ...options.env } };
    return isAlone ? runProgram(words, all) : runHosted(words, all);
  };
  const runEach = (...lines: readonly Line[]): Promise<Outcome[]> =>
    Promise.all(lines.map((line) => run(line)));
  /** Runs one after the other, and answers how they ended. */
  const expectEach = async (endings: readonly Ending[]): Promise<Outcome[]> => {
    const outcomes: Outcome[] = [];
    for (const [line, code, stdout, stderr, options] of endings) {
      const outcome = await run(line, options);
      const expected = { code, stdout: printed(stdout), stderr: printed(stderr) };
      expect.soft(outcome, wordsOf(line).join(" ")).toEqual(expected);
      outcomes.push(outcome);
    }
    return outcomes;
  };
  /** The document of `--json` of a command that must succeed, with nothing else said. */
  // oxlint-disable-next-line no-unnecessary-type-parameters -- the caller knows what it asked for
  const json = async <T = Record<string, unknown>>(
    line: Line,
    options: CommandOptions = {},
  ): Promise<{ data: T; meta?: Record<string, unknown> }> => {
    const outcome = await run([...wordsOf(line), "--json"], options);
    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    return JSON.parse(outcome.stdout) as { data: T };
  };
  return { run, runEach, expectEach, json };
}

function printed(expected: Printed): unknown {
  return typeof expected === "string" ? expected : expect.stringMatching(expected ?? "");
}

/** A folder that all tests of a file have, and commands that are typed in it, with one environment. */
export function useFolder(env: Record<string, string> = {}) {
  const made = temporaryFolder();
  afterAll(() => made.remove());
  const folder = made.path;
  const at = (name: string): string => join(folder, name);
  const read = (name: string): string => readFileSync(at(name), "utf8");
  /** Writes a file, a value as JSON, and answers its name. */
  const write = (name: string, content: string | object, mode = 0o666): string => {
    const bytes = typeof content === "string" || Buffer.isBuffer(content) ? content : JSON.stringify(content);
    mkdirSync(dirname(at(name)), { recursive: true });
    writeFileSync(at(name), bytes, { mode });
    return name;
  };
  return { folder, at, read, write, ...commandLine(folder, env) };
}
