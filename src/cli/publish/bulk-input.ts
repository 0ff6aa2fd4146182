/** A line with its number, from 1; `undefined` bytes for one longer than allowed. */
export interface Line {
  readonly number: number;
  readonly bytes: Buffer | undefined;
  /** Bytes of input up to its end. */
  readonly endsAt: number;
}

const NEWLINE = 0x0a;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * The lines of an input of any length, in groups as they arrive, so that a slow producer's lines need not wait for others.
 * Blank lines are left out but counted. An overlong line is skipped without being held in memory.
 */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  maxLineBytes: number,
): AsyncGenerator<Line[]> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let number = 1;
  let endsAt = 0;

  const hold = (part: Buffer) => {
    heldBytes += part.length;
    endsAt += part.length;
    if (heldBytes <= maxLineBytes) held.push(part);
    else held = [];
  };
  const finish = (lines: Line[]): void => {
    const bytes = heldBytes > maxLineBytes ? undefined : joined(held, number === 1);
    if (bytes === undefined || !isBlank(bytes)) lines.push({ number, bytes, endsAt });
    held = [];
    heldBytes = 0;
    number += 1;
  };

  for await (const chunk of chunks) {
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      hold(chunk.subarray(start, end));
      endsAt += 1;
      finish(lines);
      start = end + 1;
    }
    hold(chunk.subarray(start));
    if (lines.length > 0) yield lines;
  }
  const last: Line[] = [];
  if (heldBytes > 0) finish(last);
  if (last.length > 0) yield last;
}

function joined(parts: readonly Buffer[], isFirst: boolean): Buffer {
  const bytes = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  return isFirst && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? bytes.subarray(3) : bytes;
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}
