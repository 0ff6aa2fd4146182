import type { Command, Interfaces } from "@oclif/core";
import type { Answer, Evreg } from "../evreg.ts";
import type { Resource } from "../resources/resource.ts";
import { emptyListHint, TargetCommand } from "./base-command.ts";
import { definedOnly, hasFilters, numberFlag, rowidArg, textArg } from "./flags.ts";
import { note, type Output, type OutputFormat } from "./io/output.ts";
import { flagWords, escapeControl } from "./io/text.ts";
import type { Target } from "./target/target.ts";
import { usageError } from "./usage-errors.ts";

/** What help shows of a command. */
export interface About {
  readonly summary: string;
  readonly description?: string;
  readonly usage?: string;
  readonly examples: Command.Example[];
}

interface RecordOptions<T> extends About {
  /** Prints what else there is to say. */
  readonly after?: (evreg: Evreg, record: T, output: Output) => Promise<void> | void;
}

type RecordOperation = "get" | "cancel" | "retry" | "skip" | "revoke";

/** A command that does one thing with one record, named by its number or name, and shows it. */
export function recordCommand<T>(
  resource: Resource<T>,
  operation: RecordOperation,
  { after, ...about }: RecordOptions<T>,
): Command.Class {
  const { noun, plural } = resource;
  const args = noun === "action" ? { name: textArg("Name of the action.") } : { id: rowidArg(noun) };
  class RecordCommand extends TargetCommand {
    static override args: Interfaces.ArgInput = args;

    async run(): Promise<void> {
      const { args: typed, flags } = await this.parse(RecordCommand);
      const output = this.outputFor(flags);
      await this.withTarget(flags, async (evreg) => {
        const port = evreg[plural] as unknown as Record<
          RecordOperation,
          (key: unknown) => Promise<Answer<T>>
        >;
        const answer = await port[operation](typed["id"] ?? typed["name"]);
        await output.record(answer, resource.record);
        await after?.(evreg, answer.data, output);
      });
    }
  }
  return Object.assign(RecordCommand, about);
}

interface ListOptions<T> extends About {
  /** Their values are the query. */
  readonly flags?: Interfaces.FlagInput;
  /** Records of a page; where absent, a listing says nothing of further pages. */
  readonly pageSize?: number;
  /** What an empty listing says that leaves nothing out, instead of the resource's sentence. */
  readonly none?: (evreg: Evreg, target: Target) => Promise<string>;
  /** Prints what else there is to say to a person. */
  readonly after?: (evreg: Evreg, records: readonly T[]) => Promise<void>;
}

/** The command that lists the records of one noun; the noun alone is its other name. */
export function listCommand<T extends { readonly rowid: number }>(
  resource: Resource<T>,
  { flags = {}, pageSize, none, after, ...about }: ListOptions<T>,
): Command.Class {
  const { noun, plural } = resource;
  class ListCommand extends TargetCommand {
    static override aliases = [plural];
    static override flags: Interfaces.FlagInput = flags;

    async run(): Promise<void> {
      const { flags: typed } = await this.parse(ListCommand);
      checkAllFlag(typed);
      const { all, ...query } = definedOnly(
        Object.fromEntries(Object.keys(flags).map((name) => [name, typed[name] as unknown])),
      );
      const output = this.outputFor(typed);
      await this.withTarget(typed, async (evreg, target) => {
        const port = evreg[plural] as unknown as {
          list: (query: object) => Promise<Answer<readonly T[]>>;
        };
        const read = (next: object) => port.list({ ...query, ...next });
        if (all === true) return printAllPages(read, output, query["after"] as number | undefined);
        const answer = await read({});
        const records = answer.data;
        await output.list(answer, resource.list, async () => {
          if (hasFilters(query)) return emptyListHint(`No ${noun} matches.`, evreg, query);
          return none === undefined ? resource.none() : none(evreg, target);
        });
        if (pageSize !== undefined) {
          const hasMore = async (last: number) => (await read({ limit: 1, after: last })).data.length > 0;
          const { limit = pageSize } = query as { limit?: number };
          const page = { command: plural, flags: typed, nouns: [noun, plural] as const, records };
          await notePagination({ ...page, limit, hasMore }, output);
        }
        if (output.format === "table") await after?.(evreg, records);
      });
    }
  }
  return Object.assign(ListCommand, about);
}

/** For a listing that is read a page at a time. */
export function pageFlags({ noun, plural }: Pick<Resource<never>, "noun" | "plural">) {
  return {
    limit: numberFlag(`${plural[0]!.toUpperCase()}${plural.slice(1)} to list, 1 to 500 (default 50).`),
    after: numberFlag(`Only those after this ${noun}.`, { helpValue: "ID" }),
  };
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
