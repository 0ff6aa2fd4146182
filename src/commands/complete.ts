import { Command } from "@oclif/core";
import { type Candidate, type CompletionTarget, completionAt, unquoted, wordsOf } from "../cli/completion.ts";
import { writeOut } from "../cli/io/output.ts";
import { escapeControl, truncate } from "../cli/io/text.ts";

// It has a file of its own: it runs at each press of a key, and loads nothing that it does not need.

const ABOUT_CELLS = 60;
/** Longer than this nobody waits for a name after a key was pressed. */
const ANSWER_WITHIN_MS = 1_000;

/**
 * What the scripts of `evreg completion` ask: `line` with the command line up to the cursor, or `words` with the words of
 * it, the last one being typed. Answers a candidate a line, a tab and what it is; or `:files`, `:folders`. What goes wrong
 * is not told: it would appear in the middle of a command line.
 */
export class Complete extends Command {
  static override hidden = true;
  static override summary = "What can be typed next, for the scripts of completion.";
  static override examples = ["evreg complete words -- actions get ''"];
  static override strict = false;

  async run(): Promise<void> {
    // The words are not parsed, as they are another command's.
    const [form, , ...rest] = this.argv;
    const words = form === "line" ? wordsOf(rest.join(" ")).slice(1) : rest;
    const target = completionAt(words, this.config);
    if (target.kind === "files" || target.kind === "folders") await writeOut(`:${target.kind}\n`);
    else await writeOut(lines(await this.candidatesOf(target), unquoted(words.at(-1) ?? "")));
  }

  private async candidatesOf(
    target: Extract<CompletionTarget, { kind: "words" } | { kind: "names" }>,
  ): Promise<readonly Candidate[]> {
    if (target.kind === "words") return target.candidates;
    // Loaded here: most keys are pressed for words that need no server, nor the configuration.
    const { candidatesFor: namesFor } = await import("../cli/completion-candidates.ts");
    const late = Promise.withResolvers<readonly Candidate[]>();
    const timer = setTimeout(() => late.resolve([]), ANSWER_WITHIN_MS);
    const names = namesFor(target.of, target.flags, this.config.configDir).catch(() => []);
    const words = await Promise.race([names, late.promise]);
    clearTimeout(timer);
    return words.map(({ value, about }) => ({ value: `${target.prefix}${value}`, about }));
  }
}

function lines(candidates: readonly Candidate[], typed: string): string {
  return candidates
    .filter(({ value }) => value.startsWith(typed) && escapeControl(value) === value)
    .map(({ value, about = "" }) => `${value}\t${truncate(escapeControl(about), ABOUT_CELLS)}\n`)
    .join("");
}
