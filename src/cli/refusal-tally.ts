/** So many lines that are refused for the same reason are told each; it is known by then. */
const TOLD_EACH = 5;
/** Lines with more reasons than these are told each, however many: the tally must not grow with the file. */
const MOST_REASONS = 1_000;

interface Alike {
  lines: number;
  lastLine: number;
}

/** Keeps a file of a million lines, all refused alike, from filling the screen with one sentence. */
export class RefusalTally {
  readonly #alike = new Map<string, Alike>();

  /** Notes a refused line; answers whether it is to be told by itself. */
  add(line: number, reason: string): boolean {
    const known = this.#alike.get(reason);
    if (known === undefined) {
      if (this.#alike.size < MOST_REASONS) this.#alike.set(reason, { lines: 1, lastLine: line });
      return true;
    }
    known.lines += 1;
    known.lastLine = line;
    return known.lines <= TOLD_EACH;
  }

  /**
   * A sentence for each reason that was not told for all of its lines, and how to see them.
   * @param rejects the file that holds each of them, if one does
   */
  untold(rejects: string | undefined): readonly string[] {
    const sums: string[] = [];
    for (const [reason, { lines, lastLine }] of this.#alike) {
      const more = lines - TOLD_EACH;
      if (more < 1) continue;
      const subject = more === 1 ? "1 more line" : `${more.toLocaleString("en")} more lines`;
      sums.push(`${subject}, up to line ${lastLine}: ${reason}`);
    }
    if (sums.length === 0) return sums;
    return [
      ...sums,
      rejects === undefined
        ? "--output jsonl tells each refused line."
        : `${rejects} holds each refused line.`,
    ];
  }
}
