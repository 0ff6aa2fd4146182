import { type Command, Flags, type Interfaces } from "@oclif/core";
import type { PageMeta } from "../domain/event.ts";
import type { Answer, Evreg } from "../evreg.ts";
import type { ListView, RecordView } from "./views/view.ts";
import { TargetCommand } from "./base-command.ts";
import { definedOnly, hasFilters, numberFlag, rowidArg, textArg } from "./flags.ts";
import { note, type Output } from "./io/output.ts";
import type { Column } from "./io/table.ts";
import { counted, escapeControl, flagWords } from "./io/text.ts";
import { nextCommand, plainCommand } from "./target/next-command.ts";
import { subscriptionArg, subscriptionId, type TypedSubscription } from "./subscriptions/name.ts";
import { usageError } from "./usage-errors.ts";
import { type Progress, progressBar } from "./io/progress.ts";

/** What help shows of a command. */
export interface About {
  readonly summary: string;
  readonly description?: string;
  readonly examples: Command.Example[];
}

interface RecordOptions<T> extends About {
  /** Prints what else there is to say. */
  readonly after?: (evreg: Evreg, record: T, output: Output) => Promise<void> | void;
}

type RecordOperation = "get" | "cancel" | "skip" | "retry" | "revoke";

/** A command that does one thing with one record, named by its number or name, and shows it. */
export function recordCommand<T>(
  resource: RecordView<T>,
  operation: RecordOperation,
  { after, ...about }: RecordOptions<T>,
): Command.Class {
  const { noun, plural } = resource;
  const args = argsOf(noun);
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
        const id = typed["id"] as TypedSubscription | undefined;
        // Only a subscription's is a text.
        const key = typeof id === "string" ? await subscriptionId(evreg, id) : (id ?? typed["name"]);
        const answer = await port[operation](key);
        await output.record(answer, resource.record);
        await after?.(evreg, answer.data, output);
      });
    }
  }
  return Object.assign(RecordCommand, about);
}

function argsOf(noun: RecordView<never>["noun"]): Interfaces.ArgInput {
  if (noun === "action") return { name: textArg("Name of the action.") };
  return { id: noun === "subscription" ? subscriptionArg : rowidArg(noun) };
}

interface ListOptions<T> extends About {
  /** Their values are the query. */
  readonly flags?: Interfaces.FlagInput;
  /** Records of a page; where absent, a listing is whole unless it is asked for fewer. */
  readonly pageSize?: number;
  /** Replaces the resource's columns, for a query that asks for more. */
  readonly columns?: (query: object) => readonly Column<T>[];
  /** Prints what else there is to say of each page that was read. */
  readonly afterPage?: (meta: Partial<PageMeta>, isFirst: boolean) => void;
  /** Reads what a flag names, such as a file: the value for the query. */
  readonly readFlags?: (typed: Readonly<Record<string, unknown>>) => Promise<object>;
}

/** The command that lists the records of one noun; the noun alone is its other name. */
export function listCommand<T extends { readonly rowid: number }>(
  resource: ListView<T>,
  { flags = {}, readFlags, pageSize, columns, afterPage, ...about }: ListOptions<T>,
): Command.Class {
  const { noun, plural, command = plural } = resource;
  class ListCommand extends TargetCommand {
    static override aliases = command === plural ? [plural] : [];
    static override flags: Interfaces.FlagInput = flags;

    async run(): Promise<void> {
      const { flags: typed } = await this.parse(ListCommand);
      const { all, ...filters } = definedOnly({
        ...Object.fromEntries(Object.keys(flags).map((name) => [name, typed[name] as unknown])),
        ...(await readFlags?.(typed)),
      });
      if (all === true && typed.output !== undefined && typed.output !== "jsonl") {
        throw usageError("--all prints one record a line; leave --output out or make it jsonl.");
      }
      const output = this.outputFor(typed);
      await this.withTarget(typed, async (evreg, target) => {
        const { list } = evreg[command as "actions"] as unknown as {
          list: (query: object) => Promise<Answer<readonly T[], Partial<PageMeta>>>;
        };
        const { subscription: named } = filters as { subscription?: TypedSubscription };
        const query: object =
          named === undefined ? filters : { ...filters, subscription: await subscriptionId(evreg, named) };
        let isFirst = true;
        const read = async (next: object) => {
          const answer = await list(next);
          afterPage?.(answer.meta ?? {}, isFirst);
          isFirst = false;
          return answer;
        };
        if (all === true) return printAllPages(read, output, query);
        const { limit = pageSize ?? Infinity } = query as { limit?: number };
        const answer = await wholePage(read, query, limit);
        const { data: records, meta = {} } = answer;
        // A token may read what is of some applications, and a server may have more.
        const mayRead =
          target.kind === "local" ? "" : `\nThere may be more than you may see: ${nextCommand("whoami")}`;
        const nothing = hasFilters(query) ? noneMatches(noun, query) : resource.none() + mayRead;
        await output.list(answer, columns?.(query) ?? resource.list, nothing);
        if (output.format !== "table") return;
        const [shown, last] = [records.length, records.at(-1)?.rowid];
        if (meta.next !== undefined) {
          note(escapeControl(searchLine(shown, meta, plainCommand(`${command}${flagWords(typed)}`))));
        } else if (last !== undefined && shown >= limit && shown !== meta.total) {
          // Half a listing looks whole.
          note(escapeControl(pageLine(resource, typed, { shown, total: meta.total, last })));
        }
      });
    }
  }
  return Object.assign(ListCommand, about);
}

/** Filters that a mistyped name or number may be in, and what lists those that there are. */
const LISTED_BY = { action: "actions", event: "events", subscription: "subscriptions" };

function noneMatches(noun: string, query: object): string {
  const lists = Object.entries(LISTED_BY).flatMap(([filter, plural]) =>
    filter in query ? [nextCommand(plural)] : [],
  );
  return `No ${noun} matches.${lists.length === 0 ? "" : ` What there is: ${lists.join(", ")}`}`;
}

/** The flags of a listing that is read a page at a time. */
export function pageFlags({ noun, plural }: Pick<ListView<never>, "noun" | "plural">) {
  return {
    limit: numberFlag(`${plural[0]!.toUpperCase()}${plural.slice(1)} to list, 1 to 500 (default 50).`),
    after: numberFlag(`Only those after this ${noun}.`, { helpValue: "ID" }),
  };
}

export const allFlag = Flags.boolean({
  summary: "All of them, however many, one JSON record a line.",
  exclusive: ["json", "limit"],
});

/**
 * How many records a page shows, and what to type for the next one.
 * @param flags the command's, with only those that were typed defined
 * @param page `total`: how many the whole listing has, where that is known
 */
export function pageLine(
  { noun, plural, command = plural }: Pick<ListView<never>, "noun" | "plural" | "command">,
  flags: object,
  {
    shown,
    total,
    last,
  }: { readonly shown: number; readonly total?: number | undefined; readonly last: number },
): string {
  const records = (total ?? shown) === 1 ? noun : plural;
  const ofTotal = total === undefined ? "" : ` of ${total.toLocaleString("en")}`;
  const next = plainCommand(`${command}${flagWords(flags)} --after ${last}`);
  return `${shown.toLocaleString("en")}${ofTotal} ${records} shown. Next page: ${next}`;
}

const RECORDS_A_PAGE = 500;

/** Prints every record of a listing, one a line. One page at a time is held, and reading does not slow down with depth. */
async function printAllPages(
  list: (query: object) => Promise<Answer<readonly { readonly rowid: number }[], Partial<PageMeta>>>,
  output: Output,
  query: { readonly after?: number },
): Promise<void> {
  let { after } = query;
  for (;;) {
    const { data, meta = {} } = await list({ ...query, limit: RECORDS_A_PAGE, ...definedOnly({ after }) });
    await output.lines(data);
    if (meta.next === null || (meta.next === undefined && data.length < RECORDS_A_PAGE)) return;
    after = meta.next ?? data.at(-1)?.rowid;
  }
}

type List<T> = (query: object) => Promise<Answer<readonly T[], Partial<PageMeta>>>;

/**
 * One page of a listing. A search may end before its page is full, as it has looked at much: then it goes on until it is
 * full or nothing is left, and a terminal is shown how far it is.
 */
export async function wholePage<T>(
  list: List<T>,
  query: object,
  pageSize: number,
): Promise<Answer<readonly T[], Partial<PageMeta>>> {
  let line: Progress | undefined;
  const matching: T[] = [];
  let searched = 0;
  let next = {};
  try {
    for (;;) {
      const answer = await list({ ...query, ...next });
      const { meta = {} } = answer;
      if (meta.next === undefined) return answer;
      matching.push(...answer.data);
      searched += meta.searched ?? 0;
      if (meta.next === null || matching.length >= pageSize) {
        return { data: matching, meta: { ...meta, per_page: pageSize, searched } };
      }
      const text = `${counted(matching.length, "event")} found in ${searched.toLocaleString("en")} so far`;
      line ??= await progressBar("{text}", { text });
      line.update(0, 1, { text });
      next = { after: meta.next, limit: pageSize - matching.length };
    }
  } finally {
    line?.stop();
  }
}

/** Where a search has come to. */
function searchLine(shown: number, { searched = 0, next }: Partial<PageMeta>, again: string): string {
  const counts = `${counted(shown, "event")} found in ${searched.toLocaleString("en")}`;
  return typeof next === "number"
    ? `${counts}. Go on: ${again} --after ${next}`
    : `${counts}; no more behind.`;
}
