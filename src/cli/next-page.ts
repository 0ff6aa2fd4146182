import { flagWords } from "./flag-words.ts";
import { note, type Output } from "./output.ts";
import { printableLine } from "./printable.ts";

export interface ShownPage {
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
export async function tellPage(page: ShownPage, output: Output): Promise<void> {
  const last = page.records.at(-1);
  if (output.format !== "table" || last === undefined) return;
  const isMore = page.records.length >= page.limit && (await page.hasMore(last.rowid));
  const isWatched = process.stdout.isTTY && process.stderr.isTTY;
  if (!isMore && !isWatched) return;
  note(printableLine(pageLine(page, isMore ? last.rowid : undefined)));
}

/** @param after the record that the next page comes behind; `undefined` when there is none */
export function pageLine(
  { command, flags, nouns, records, total }: Omit<ShownPage, "hasMore" | "limit">,
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
