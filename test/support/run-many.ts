import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { cleanEnv, type Outcome } from "./program.ts";

/** The build: the commands oclif loads come from there, and must share its modules. */
const BUILT = new URL("../../dist/cli/main.js", import.meta.url).href;
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Each in turn, in one process; what `main` adds is only the exit. */
const RUN_MANY = `
  const { runCommandLine } = await import(${JSON.stringify(BUILT)});
  const outcomes = [];
  const real = process.stdout.write.bind(process.stdout);
  const before = { ...process.env };
  for (const [words, env] of JSON.parse(process.argv[1])) {
    const outcome = { code: null, stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) {
      process[name].write = (text, done) => ((outcome[name] += text), done?.(), true);
    }
    process.env = { ...before, ...env };
    outcome.code = await runCommandLine(words, { root: ${JSON.stringify(ROOT)} });
    outcomes.push(outcome);
  }
  real(JSON.stringify(outcomes), () => process.exit(0));
`;

/** A command line, with variables that it alone is to see. */
export type CommandLine =
  | readonly string[]
  | readonly [words: readonly string[], env: Record<string, string>];

/** Runs command lines one after the other in one process of the built program: a process for each costs far more. */
export function runMany(
  commands: readonly CommandLine[],
  options: { readonly cwd?: string; readonly env?: Record<string, string> } = {},
): Promise<Outcome[]> {
  const lines = commands.map((line) => (Array.isArray(line[0]) ? line : [line, {}]));
  const args = ["--input-type=module", "--eval", RUN_MANY, JSON.stringify(lines)];
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      args,
      { cwd: options.cwd, env: cleanEnv(options.env), encoding: "utf8", maxBuffer: 64 * 1024 * 1024 },
      (error, stdout) => (error === null ? resolve(JSON.parse(stdout) as Outcome[]) : reject(error)),
    );
  });
}
