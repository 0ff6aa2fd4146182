import { createInterface } from "node:readline/promises";
import { interruption } from "../interruption.ts";
import { usage } from "../usage.ts";

/**
 * Asks on the terminal whether so many subscriptions may go.
 * @throws `usage` when nobody can be asked
 */
export async function agreedToDelete(count: number): Promise<"yes" | "no" | "interrupted"> {
  const what = `${count.toLocaleString("en")} subscription${count === 1 ? "" : "s"}`;
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw usage(
      `This deletes ${what}, and there is no terminal to ask at; say so with --yes. Nothing was changed.`,
    );
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // While a line is read, the key arrives here instead of as a signal.
  terminal.once("SIGINT", () => process.kill(process.pid, "SIGINT"));
  try {
    const question = `Delete ${what}, with the deliveries not finished yet? [y/N] `;
    const answer = await terminal.question(question, { signal: interruption() });
    return /^y(es)?$/i.test(answer.trim()) ? "yes" : "no";
  } catch (error) {
    if (!(error instanceof Error && error.name === "AbortError")) throw error;
    process.stderr.write("\n");
    return "interrupted";
  } finally {
    terminal.close();
  }
}
