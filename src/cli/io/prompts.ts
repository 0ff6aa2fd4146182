import { createInterface } from "node:readline/promises";
import { BEARER_TOKEN } from "../../domain/formats.ts";
import { EXIT, usageError } from "../usage-errors.ts";
import { readInput } from "./input.ts";
import { interruption } from "./interruption.ts";
import { note } from "./output.ts";

/** Whether there is a person to answer: questions go to stderr, answers come from stdin. */
export function canAsk(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/**
 * Asks on the terminal whether to do something, and answers the exit code where a person does not agree. Anything but a yes is
 * a no.
 * @param nothing what to say then: that nothing was done
 */
export async function refusalOf(question: string, nothing: string): Promise<number | undefined> {
  let refusal: number = EXIT.failed;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // While a line is read, the key arrives here instead of as a signal.
  terminal.once("SIGINT", () => process.kill(process.pid, "SIGINT"));
  try {
    const answer = await terminal.question(`${question} [y/N] `, { signal: interruption() });
    if (/^y(es)?$/i.test(answer.trim())) return undefined;
  } catch (error) {
    if (!(error instanceof Error && error.name === "AbortError")) throw error;
    process.stderr.write("\n");
    refusal = EXIT.interrupted;
  } finally {
    terminal.close();
  }
  note(nothing);
  return refusal;
}

/**
 * Asks before what must not be done unasked.
 * @param what such as `This deletes 2 subscriptions`
 * @throws EvregError `usage` where nobody can be asked
 */
export async function agreementTo(
  what: string,
  question: string,
  nothing: string,
): Promise<number | undefined> {
  if (canAsk()) return refusalOf(question, nothing);
  throw usageError(`${what}, and there is no terminal to ask at; say so with --yes. ${nothing}`);
}

/**
 * What a file holds that must not stand on a command line; `-` is stdin, but no terminal, which would show what is typed.
 * @param flag that names the file
 * @throws EvregError `usage` for a file that cannot be read or holds nothing
 */
export async function readCredential(flag: string, path: string): Promise<string> {
  if (path === "-" && process.stdin.isTTY) {
    throw usageError(`--${flag}: a terminal shows what is typed there; name a file, or pipe the value in.`);
  }
  const credential = (await readInput(path)).toString("utf8").trim();
  if (credential === "") throw usageError(`--${flag}: ${path === "-" ? "the input" : path} is empty.`);
  return credential;
}

/** @throws EvregError `usage` for a file that holds anything but one token */
export async function readToken(path: string): Promise<string> {
  const token = await readCredential("token-file", path);
  if (BEARER_TOKEN.test(token)) return token;
  const held = path === "-" ? "the input" : path;
  throw usageError(
    `--token-file: ${held} must hold a token and nothing else, such as evreg_ and 36 letters and digits.`,
  );
}
