/** A line with its number, from 1; `undefined` bytes for one longer than allowed. */
export interface Line {
  readonly number: number;
  readonly bytes: Uint8Array | undefined;
  /** Bytes of input up to its end. */
  readonly endsAt: number;
}

const NEWLINE = 0x0a;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * The lines of an input of any length, in groups as they arrive: a group ends where the input has nothing more to give
 * at once, so that a caller who batches need not let a slow producer's lines wait for company. Blank lines are left
 * out, and keep their numbers. An overlong line is passed over without being held.
 * @param behind where the chunks begin, when that is behind a line of the input
 */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  maxLineBytes: number,
  behind: Pick<Line, "number" | "endsAt"> = { number: 0, endsAt: 0 },
): AsyncGenerator<Line[]> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let number = behind.number + 1;
  let { endsAt } = behind;

  const hold = (part: Buffer) => {
    heldBytes += part.length;
    if (heldBytes <= maxLineBytes) held.push(part);
    else held = [];
  };
  const finish = (): Line | undefined => {
    const bytes = heldBytes > maxLineBytes ? undefined : joined(held, number === 1);
    const line = { number, bytes, endsAt };
    held = [];
    heldBytes = 0;
    number += 1;
    return bytes !== undefined && isBlank(bytes) ? undefined : line;
  };

  for await (const chunk of chunks) {
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      hold(chunk.subarray(start, end));
      endsAt += end + 1 - start;
      const line = finish();
      if (line !== undefined) lines.push(line);
      start = end + 1;
    }
    hold(chunk.subarray(start));
    endsAt += chunk.length - start;
    if (lines.length > 0) yield lines;
  }
  if (heldBytes > 0) {
    const line = finish();
    if (line !== undefined) yield [line];
  }
}

function joined(parts: readonly Buffer[], first: boolean): Buffer {
  const bytes = parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
  const marked = first && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK);
  return marked ? bytes.subarray(3) : bytes;
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}
