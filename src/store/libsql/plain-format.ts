import type { FileHandle } from "node:fs/promises";

/** In the first page of a file: the formats in which it is written and read. */
const FORMAT_AT = 18;
/** Without a log. */
const PLAIN = Buffer.from([1, 1]);

/** Has a copy not ask for a log beside it, as it is whole by itself. Serving it makes it a file with a log again. */
export async function makePlain(copy: FileHandle): Promise<void> {
  const { size } = await copy.stat();
  if (size > FORMAT_AT) await copy.write(PLAIN, 0, PLAIN.length, FORMAT_AT);
}
