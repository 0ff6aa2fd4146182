import { createInterface } from "node:readline";
import { createInterface as createQuestions } from "node:readline/promises";
import { Writable } from "node:stream";
import { interruption } from "./interruption.ts";

export type Confirmation = "yes" | "no" | "interrupted";

/** Whether there is a person to answer: questions go to stderr, answers come from stdin. */
export function canAsk(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Asks on the terminal. Anything but a yes is a no. */
export async function confirm(question: string): Promise<Confirmation> {
  const terminal = createQuestions({ input: process.stdin, output: process.stderr });
  // While a line is read, the key arrives here instead of as a signal.
  terminal.once("SIGINT", () => process.kill(process.pid, "SIGINT"));
  try {
    const answer = await terminal.question(`${question} [y/N] `, { signal: interruption() });
    return /^y(es)?$/i.test(answer.trim()) ? "yes" : "no";
  } catch (error) {
    if (!(error instanceof Error && error.name === "AbortError")) throw error;
    process.stderr.write("\n");
    return "interrupted";
  } finally {
    terminal.close();
  }
}

/** A line typed on the terminal without being shown there; empty when it ends before one (Ctrl-D). */
export async function readHidden(prompt: string): Promise<string> {
  // Reading through it keeps the terminal from showing what is typed; what it would show itself goes nowhere.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  // While a line is read, the key arrives here instead of as a signal.
  terminal.once("SIGINT", () => process.kill(process.pid, "SIGINT"));
  // Not before: what is typed until then is shown.
  process.stderr.write(prompt);
  try {
    return await new Promise<string>((resolve) => {
      terminal.once("line", resolve);
      terminal.once("close", () => resolve(""));
    });
  } finally {
    terminal.close();
    process.stderr.write("\n");
  }
}
