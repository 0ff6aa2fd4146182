import type { Output, OutputFormat } from "./output.ts";
import { usage } from "./usage.ts";

const RECORDS_A_PAGE = 500;

/**
 * Prints every record of a listing, one a line, page after page behind the last one seen. The cost of a page does not
 * grow with its depth, and one page at a time is held.
 */
export async function walk(
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
export function checkWalk(flags: { all?: boolean; output?: OutputFormat | undefined }): void {
  if (flags.all === true && flags.output !== undefined && flags.output !== "jsonl") {
    throw usage("--all prints one record a line; leave --output out or make it jsonl.");
  }
}
