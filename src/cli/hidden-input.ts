import { createInterface } from "node:readline";
import { Writable } from "node:stream";

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
