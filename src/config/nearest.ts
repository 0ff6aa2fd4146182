/**
 * The known name somebody probably meant, if one is close enough: equal but for case, equal in its last part
 * (`timeoutMs` for `delivery.timeoutMs`), a few letters off, or with a word too many (`DATA_DIR` for `DATA`).
 */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const wanted = name.toLowerCase();
  let best: string | undefined;
  let bestDistance = (wanted.length < 4 ? 1 : Math.max(2, Math.floor(wanted.length / 4))) + 1;
  for (const candidate of known) {
    const lower = candidate.toLowerCase();
    const last = lower.slice(lower.lastIndexOf(".") + 1);
    const wordMore = wanted.startsWith(`${lower}_`) || wanted.endsWith(`_${lower}`);
    const distance = wordMore ? 1.5 : Math.min(editDistance(wanted, lower), editDistance(wanted, last) + 0.5);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Letters to insert, remove or replace to get from one word to the other. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1];
      current.push(
        Math.min(
          (previous[column] ?? 0) + 1,
          (current[column - 1] ?? 0) + 1,
          (previous[column - 1] ?? 0) + (same ? 0 : 1),
        ),
      );
    }
    previous = current;
  }
  return previous[to.length] ?? 0;
}
