import { expect, test } from "vitest";
import type { CommandOptions } from "../support/command-line.ts";
import { runProgram, startCommand } from "../support/program.ts";
import { register } from "../support/records.ts";
import { useServed } from "../support/served.ts";

// Most command lines of the tests run in one process, after others. A process of its own must make no difference.

const { folder, data, run } = useServed(({ evreg }) => register(evreg, "a.b"));
const env = { EVREG_DATA: data };

const VERSION = /^evreg\/\S+ \S+ node-\S+(?: \([0-9a-f]{12}(?:-modified)?, \d{4}-\S+Z\))?\n$/;
const LINES: readonly (readonly [words: string, expected: object, options?: CommandOptions])[] = [
  ["actions --output jsonl", { code: 0, stdout: expect.stringContaining('"a.b"'), stderr: "" }],
  ["actions get a.b", { code: 0, stderr: "" }, { env: { NO_COLOR: "", FORCE_COLOR: "1", COLUMNS: "40" } }],
  ["events get 9", { code: 3, stdout: "", stderr: expect.stringMatching(/: evreg events\n$/) }],
  ["events get 0", { code: 2, stdout: "", stderr: expect.stringContaining("must be a whole number") }],
  ["publish --batch - --json", { code: 7 }, { input: '{"action":"no.such","payload":{}}\n\n[]' }],
  ["actions --url http://127.0.0.1:9 --json", { code: 6, stdout: "" }],
  ["actions --bogus", { code: 2, stdout: "", stderr: expect.stringContaining("no flag --bogus") }],
  ["--version", { code: 0, stdout: expect.stringMatching(VERSION) }],
];

test("a command prints and ends the same in its own process and after others", async () => {
  for (const [line, expected, options = {}] of LINES) {
    const words = line.split(" ");
    const alone = await runProgram(words, { cwd: folder, ...options, env: { ...env, ...options.env } });
    expect.soft(alone, line).toMatchObject(expected);
    expect.soft(await run(words, options), line).toEqual(alone);
  }
});

test("an open stdin does not keep a finished command running", async () => {
  expect(await startCommand("publish a.b {}", { env }).ended).toMatchObject({ code: 0 });
});
