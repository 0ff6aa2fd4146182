import { distance } from "fastest-levenshtein";
import { NAME_LENGTH } from "../names.ts";

/**
 * The known name somebody probably meant, if one is close enough: equal but for case, equal in its last part
 * (`timeoutMs` for `delivery.timeoutMs`), a few letters off, or with a word too many (`DATA_DIR` for `DATA`).
 * `undefined` for a long text, which is no misspelt name.
 */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  if (name.length > NAME_LENGTH) return undefined;
  const wanted = name.toLowerCase();
  let best: string | undefined;
  let fewest =
    (wanted.length < 5 ? Math.floor(wanted.length / 3) : Math.max(2, Math.floor(wanted.length / 4))) + 1;
  for (const candidate of known) {
    const lower = candidate.toLowerCase();
    const last = lower.slice(lower.lastIndexOf(".") + 1);
    const wordMore = wanted.startsWith(`${lower}_`) || wanted.endsWith(`_${lower}`);
    const changed = Math.min(distance(wanted, lower), distance(wanted, last) + 0.5);
    // Letters in another order are one mistake.
    const isSwapped = lower.length === wanted.length && lettersOf(lower) === lettersOf(wanted);
    const letters = isSwapped ? Math.min(1, changed) : wordMore ? 1.5 : changed;
    // The one as it was typed wins over names that differ in case alone.
    const edits = letters + distance(name, candidate) / 1_000;
    if (edits < fewest) [best, fewest] = [candidate, edits];
  }
  return best;
}

function lettersOf(word: string): string {
  return Array.from(word).toSorted().join("");
}
