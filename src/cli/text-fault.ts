import { isUtf8 } from "node:buffer";
import { firstBadUtf8 } from "../json/fault.ts";

const NEWLINE = 0x0a;
/** Beside plain ones, a mark at the beginning tells which of its bytes comes first. */
const UTF_16_MARKS = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])];

/**
 * Why a file is not read as text, as the rest of a sentence about it; `undefined` for UTF-8. A reader of YAML would go on
 * with signs that stand for what it could not read, and complain of those.
 */
export function textFault(bytes: Uint8Array): string | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (UTF_16_MARKS.some((mark) => text.subarray(0, mark.length).equals(mark))) {
    return "this is UTF-16; save it as UTF-8";
  }
  const nul = text.indexOf(0);
  if (nul >= 0) {
    return `this is no text in UTF-8: line ${lineOf(text, nul)} has a byte that is zero; if it is UTF-16, save it as UTF-8`;
  }
  if (isUtf8(text)) return undefined;
  return `this is no text in UTF-8 from line ${lineOf(text, firstBadUtf8(text))} on; if it is text in another encoding, save it as UTF-8`;
}

function lineOf(text: Buffer, offset: number): number {
  let line = 1;
  for (let end = text.indexOf(NEWLINE); end >= 0 && end < offset; end = text.indexOf(NEWLINE, end + 1))
    line += 1;
  return line;
}
