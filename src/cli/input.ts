import { fstatSync } from "node:fs";
import { open, readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import { EvregError } from "../domain/error.ts";
import { usage } from "./usage.ts";

export interface Input {
  readonly stream: Readable;
  /** Bytes it holds, where that is known beforehand. */
  readonly size: number | undefined;
}

/** A file argument's whole content; `-` is stdin. `usage` names what could not be read. */
export async function readInput(path: string): Promise<Uint8Array> {
  if (path === "-") {
    const chunks: Buffer[] = [];
    for await (const chunk of chunksOf(stdin(), path)) chunks.push(chunk);
    return Buffer.concat(chunks);
  }
  try {
    return await readFile(path);
  } catch (error) {
    throw unreadable(path, error);
  }
}

/**
 * What a stream of `path` holds, as it comes. `usage` names the file when the system fails in the middle of it; a stream
 * that was aborted says so.
 */
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
      throw usage(`${path} is a folder; name a file.`);
    }
    const { size } = stat;
    return {
      stream: file.createReadStream({ highWaterMark: 256 * 1024, start: fromByte }),
      size: size === 0 ? undefined : size,
    };
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
  const name = path === "-" ? "The standard input" : path;
  if (code === "EISDIR") return usage(`${name} is a folder; name a file.`);
  if (code === "ENOENT") return usage(`There is no file ${path}. Use - to read from stdin.`);
  // Node's message goes on with the system call: "EIO: i/o error, read".
  const [why = code] = message.split(", ");
  return usage(`${name} cannot be read (${why}).`);
}
