import { Flags } from "@oclif/core";
import { ACTION_CHANGED } from "../resources/actions.ts";
import { TargetCommand } from "./base-command.ts";
import { definedOnly, textArg } from "./flags.ts";
import { note, type Output, type OutputFormat } from "./io/output.ts";
import { flagWords, escapeControl } from "./io/text.ts";
import { EXIT, usageError } from "./usage-errors.ts";

/** @param undone what `--undo` does */
export function endFlags(undone: string) {
  return {
    successor: Flags.string({
      summary: "The action to publish to instead.",
      helpValue: "NAME",
      exclusive: ["undo"],
    }),
    undo: Flags.boolean({ summary: undone }),
  };
}

/**
 * A command that ends an action, in part or wholly, and takes that back with `--undo`. It names its arguments and flags
 * again, as oclif reads only those that are a command's own.
 */
export abstract class EndActionCommand extends TargetCommand {
  static override args = { name: textArg("Name of the action.") };
  static override flags = endFlags("Not ended any more.");

  /** The setting of the action that it turns on. */
  protected abstract readonly setting: "deprecated" | "retired";

  async run(): Promise<number> {
    const { args, flags } = await this.parse(this.ctor as typeof EndActionCommand);
    const change = { [this.setting]: !flags.undo, ...definedOnly({ successor: flags.successor }) };
    const answer = await this.withTarget(flags, (evreg) => evreg.actions.update(args.name, change));
    await this.outputFor(flags).record(answer, ACTION_CHANGED);
    return EXIT.done;
  }
}

interface Page {
  /** As it is typed, without `evreg`. */
  readonly command: string;
  /** The command's, with only those that were typed defined. */
  readonly flags: object;
  /** Singular and plural. */
  readonly nouns: readonly [string, string];
  readonly records: readonly { readonly rowid: number }[];
  /** Records of a full page. */
  readonly limit: number;
  /** Of the whole listing, where it is known. */
  readonly total?: number;
  /** Whether there is anything behind that record. */
  readonly hasMore: (after: number) => Promise<boolean>;
}

/** Tells how to see what comes next, as half a listing in a pipe looks whole; a person at a terminal also that nothing does. */
export async function notePagination(page: Page, output: Output): Promise<void> {
  const last = page.records.at(-1);
  if (output.format !== "table" || last === undefined) return;
  const isMore = page.records.length >= page.limit && (await page.hasMore(last.rowid));
  const isWatched = process.stdout.isTTY && process.stderr.isTTY;
  if (!isMore && !isWatched) return;
  note(escapeControl(pageLine(page, isMore ? last.rowid : undefined)));
}

/** @param after the record that the next page comes behind; `undefined` when there is none */
export function pageLine(
  { command, flags, nouns, records, total }: Omit<Page, "hasMore" | "limit">,
  after: number | undefined,
): string {
  const shown = records.length.toLocaleString("en");
  const noun = nouns[(total ?? records.length) === 1 ? 0 : 1];
  const counts =
    total === undefined
      ? `${shown} ${noun} shown`
      : `${shown} of ${total.toLocaleString("en")} ${noun} shown`;
  if (after === undefined) return `${counts}; no more behind.`;
  return `${counts}. Next page: evreg ${command}${flagWords(flags)} --after ${after}`;
}

const RECORDS_A_PAGE = 500;

/**
 * Prints every record of a listing, one a line, page after page behind the last one seen. The cost of a page does not
 * grow with its depth, and one page at a time is held.
 */
export async function printAllPages(
  list: (next: { limit: number; after?: number }) => Promise<{ data: readonly { readonly rowid: number }[] }>,
  output: Output,
  from: number | undefined,
): Promise<void> {
  let after = from;
  for (;;) {
    const { data } = await list(
      after === undefined ? { limit: RECORDS_A_PAGE } : { limit: RECORDS_A_PAGE, after },
    );
    await output.lines(data);
    if (data.length < RECORDS_A_PAGE) return;
    after = data.at(-1)?.rowid;
  }
}

/** Said before anything is opened: `--all` has only one form. */
export function checkAllFlag(flags: { all?: boolean; output?: OutputFormat | undefined }): void {
  if (flags.all === true && flags.output !== undefined && flags.output !== "jsonl") {
    throw usageError("--all prints one record a line; leave --output out or make it jsonl.");
  }
}
