import { isUtf8 } from "node:buffer";
import { constants, fstatSync } from "node:fs";
import { open } from "node:fs/promises";
import type { Readable } from "node:stream";
import { EvregError } from "../../domain/error.ts";
import { firstBadUtf8 } from "../../json/json-error.ts";
import { usageError } from "../usage-errors.ts";

export interface Input {
  readonly stream: Readable;
  /** The size in bytes, where it is known. */
  readonly size: number | undefined;
}

/** Bytes of what is read whole; some devices never end. */
const MAX_BYTES = 256 * 1024 * 1024;
/** With it the opening of a pipe does not wait for somebody to write into it. Windows has neither. */
const NON_BLOCKING = process.platform === "win32" ? 0 : constants.O_NONBLOCK;

/**
 * A file argument's whole content; `-` is stdin. A pipe is read to its end, as a shell's `<(command)` is one.
 * `usage` names what could not be read.
 */
export async function readInput(path: string, maxBytes = MAX_BYTES): Promise<Uint8Array> {
  const { stream } = await openInput(path);
  return readWhole(stream, path, maxBytes);
}

/**
 * The whole content of a file that nobody named: one found in a folder, or that another refers to. A pipe or device is
 * refused: it is there by mistake, and reading it might never end.
 */
export async function readRegularFile(path: string): Promise<Uint8Array> {
  try {
    const file = await open(path, constants.O_RDONLY | NON_BLOCKING);
    const stat = await file.stat();
    if (stat.isFile()) return await readWhole(file.createReadStream(), path, MAX_BYTES);
    await file.close();
    throw stat.isDirectory()
      ? usageError(`${path} is a folder; name a file.`)
      : usageError(
          `${path} is no file but a pipe or a device, and is not waited for. Remove it, or name it by itself.`,
        );
  } catch (error) {
    throw unreadable(path, error);
  }
}

async function readWhole(stream: Readable, path: string, maxBytes: number): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunksOf(stream, path)) {
    size += chunk.length;
    if (size > maxBytes) {
      throw usageError(
        `${nameOf(path)} holds more than the ${maxBytes.toLocaleString("en")} bytes that are read at most; name a smaller file.`,
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** What a stream of `path` holds, as it comes. `usage` names the file when reading fails halfway. */
export async function* chunksOf(stream: Readable, path: string): AsyncGenerator<Buffer> {
  try {
    yield* stream as AsyncIterable<Buffer>;
  } catch (error) {
    if (error instanceof Error && error.name === "AbortError") throw error;
    throw unreadable(path, error);
  }
}

/**
 * A file argument as a stream, with its size where that is known; `-` is stdin.
 * @param fromByte where a file's stream begins
 */
export async function openInput(path: string, fromByte = 0): Promise<Input> {
  if (path === "-") return { stream: stdin(), size: undefined };
  try {
    const file = await open(path);
    const stat = await file.stat();
    if (stat.isDirectory()) {
      await file.close();
      throw usageError(`${path} is a folder; name a file.`);
    }
    // A pipe has no position, not even the first.
    const start = fromByte === 0 ? {} : { start: fromByte };
    const stream = file.createReadStream({ highWaterMark: 256 * 1024, ...start });
    return { stream, size: stat.size === 0 ? undefined : stat.size };
  } catch (error) {
    throw unreadable(path, error);
  }
}

function stdin(): Readable {
  // Node makes an empty stream of it, which would pass for a file without lines.
  const isFolder = process.platform !== "win32" && fstatSync(0).isDirectory();
  if (isFolder) throw unreadable("-", { code: "EISDIR" });
  if (process.stdin.isTTY) process.stderr.write("Reading from the terminal; end with Ctrl-D.\n");
  return process.stdin;
}

export function unreadable(path: string, error: unknown): Error {
  if (error instanceof EvregError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const name = nameOf(path);
  if (code === "EISDIR") return usageError(`${name} is a folder; name a file.`);
  if (code === "ENOENT") return usageError(`There is no file ${path}. Use - to read from stdin.`);
  // Node's message goes on with the system call: "EIO: i/o error, read".
  const [why = code] = message.split(", ");
  return usageError(`${name} cannot be read (${why}).`);
}

function nameOf(path: string): string {
  return path === "-" ? "The standard input" : path;
}

const NEWLINE = 0x0a;
/** Beside plain ones, a mark at the beginning tells which of its bytes comes first. */
const UTF_16_MARKS = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])];

/**
 * Why a file is not read as text, as the rest of a sentence about it; `undefined` for UTF-8. A YAML parser would put
 * replacement characters in, and complain of those.
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
