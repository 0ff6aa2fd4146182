/**
 * All there is of records that may be large each, read some at a time: what a read comes to is taken over from the store
 * in one go.
 * @param read the page of at most `size` that comes after `last`, of which there are `count` so far
 */
export async function pages<T>(
  size: number,
  read: (last: T | undefined, count: number) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  const all: T[] = [];
  for (;;) {
    const page = await read(all.at(-1), all.length);
    all.push(...page);
    if (page.length < size) return all;
  }
}
