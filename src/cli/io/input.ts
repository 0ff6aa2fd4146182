import { isUtf8 } from "node:buffer";
import { fstatSync, lstatSync, readlinkSync } from "node:fs";
import { open } from "node:fs/promises";
import type { Readable } from "node:stream";
import { EvregError } from "../../domain/error.ts";
import { usageError } from "../usage-errors.ts";
import { systemReason } from "./files.ts";

export interface Input {
  readonly stream: Readable;
  /** The size in bytes, where it is known. */
  readonly size: number | undefined;
}

/** Bytes of what is read whole; some devices never end. */
const MAX_BYTES = 256 * 1024 * 1024;

/**
 * A file argument's whole content; `-` is stdin. That of a shell's `<(command)` is read to its end.
 * `usage` names what could not be read.
 */
export async function readInput(path: string, maxBytes = MAX_BYTES): Promise<Buffer> {
  const { stream } = await openInput(path);
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

/** A file argument as a stream, with its size where that is known; `-` is stdin. */
export async function openInput(path: string): Promise<Input> {
  if (path === "-") return { stream: stdin(), size: undefined };
  try {
    const file = await open(path);
    const stat = await file.stat();
    if (stat.isDirectory()) {
      await file.close();
      throw usageError(`${path} is a folder; name a file.`);
    }
    const stream = file.createReadStream({ highWaterMark: 256 * 1024 });
    return { stream, size: stat.size === 0 ? undefined : stat.size };
  } catch (error) {
    throw unreadable(path, error);
  }
}

function stdin(): Readable {
  // Node makes an empty stream of it, which would pass for a file without lines.
  const isFolder = process.platform !== "win32" && fstatSync(0).isDirectory();
  if (isFolder) throw usageError(`${nameOf("-")} is a folder; name a file.`);
  if (process.stdin.isTTY) process.stderr.write("Reading from the terminal; end with Ctrl-D.\n");
  return process.stdin;
}

function unreadable(path: string, error: unknown): Error {
  if (error instanceof EvregError) return error;
  const { code } = error as NodeJS.ErrnoException;
  const name = nameOf(path);
  if (code === "EISDIR") return usageError(`${name} is a folder; name a file.`);
  if (code === "ENOENT") {
    const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    if (isLink) return usageError(`${path} is a link to ${readlinkSync(path)}, which is not there.`);
    return usageError(`There is no file ${path}. Use - to read from stdin.`);
  }
  return usageError(`${name} cannot be read (${systemReason(error)}).`);
}

function nameOf(path: string): string {
  return path === "-" ? "The standard input" : path;
}

/** Whether a text is read as JSON and not as YAML: by the name of its file, else by how it begins. */
export function isJsonText(name: string, text: string): boolean {
  return /\.json$/i.test(name) || (!/\.ya?ml$/i.test(name) && /^\s*[{[]/.test(text));
}

/**
 * Why a file is not read as text, as the rest of a sentence about it; `undefined` for UTF-8. A YAML parser would put
 * replacement characters in, and complain of those.
 */
export function textFault(bytes: Uint8Array): string | undefined {
  const isText = isUtf8(bytes) && !bytes.includes(0);
  return isText ? undefined : "this is no text in UTF-8; save it as UTF-8";
}
