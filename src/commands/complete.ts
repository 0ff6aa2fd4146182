import { Command } from "@oclif/core";
import { completionAt, wordsOf } from "../cli/completion.ts";
import { writeOut } from "../cli/io/output.ts";
import { escapeControl, truncate } from "../cli/io/text.ts";

// It has a file of its own: it runs at each press of a key, and loads nothing that it does not need.

const ABOUT_CELLS = 60;

/**
 * What the scripts of `evreg completion` ask: `line` with the command line up to the cursor, or `words` with the words of
 * it, the last one being typed. Answers a candidate a line, a tab and what it is; or `:files`, `:folders`.
 */
export class Complete extends Command {
  static override hidden = true;
  static override summary = "What can be typed next, for the scripts of completion.";
  static override examples = ["evreg complete words -- actions ''"];
  static override strict = false;

  async run(): Promise<void> {
    // The words are not parsed, as they are another command's.
    const [form, , ...rest] = this.argv;
    const words = form === "line" ? wordsOf(rest.join(" ")).slice(1) : rest;
    const target = completionAt(words, this.config);
    if (typeof target === "string") return writeOut(`:${target}\n`);
    const typed = words.at(-1) ?? "";
    const lines = target
      .filter(({ value }) => value.startsWith(typed))
      .map(({ value, about = "" }) => `${value}\t${truncate(escapeControl(about), ABOUT_CELLS)}\n`);
    await writeOut(lines.join(""));
  }
}
