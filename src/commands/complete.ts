import { Command } from "@oclif/core";
import { completionAt } from "../cli/completion.ts";
import { writeOut } from "../cli/io/output.ts";
import { escapeControl, truncate } from "../cli/io/text.ts";

// It has a file of its own: it runs at each press of a key, and loads nothing that it does not need.

const ABOUT_CELLS = 60;

/**
 * What the scripts of `evreg completion` ask, with the words up to the cursor, the last one being typed. Answers a candidate a
 * line, a tab and what it is.
 */
export class Complete extends Command {
  static override hidden = true;
  static override summary = "What can be typed next, for the scripts of completion.";
  static override examples = ["evreg complete words -- actions ''"];
  static override strict = false;

  async run(): Promise<void> {
    // The words are not parsed, as they are another command's.
    const [, , ...words] = this.argv;
    const typed = words.at(-1) ?? "";
    const lines = completionAt(words, this.config)
      .filter(({ value }) => value.startsWith(typed))
      .map(({ value, about = "" }) => `${value}\t${truncate(escapeControl(about), ABOUT_CELLS)}\n`);
    await writeOut(lines.join(""));
  }
}
