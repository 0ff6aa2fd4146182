import { isUtf8 } from "node:buffer";
import { closeSync, ftruncateSync, fstatSync, openSync, realpathSync, writeSync } from "node:fs";
import { resolve } from "node:path";
import { EvregError, type ErrorBody } from "../domain/error.ts";
import { encodeJson } from "../json/encode.ts";
import { syncFile } from "../runtime/replace-file.ts";
import type { Line } from "./ndjson.ts";
import { usage } from "./usage.ts";

/**
 * The refused lines, in a file of the person's own: `{"line", "code", "error", "field"?, "errors"?, "text"}` a line.
 * `errors` are all the rules that a payload breaks, where `error` tells only the first. `text` is the line itself, so that
 * a mended one can be made of it; `text_base64` stands for one that is not UTF-8, and neither for one too long to be held.
 */
export class Rejects {
  readonly #path: string;
  readonly #file: number;
  #bytes: number;

  /**
   * @param bytes how much of the file is kept, when a bulk goes on
   * @throws EvregError `usage` for a place that cannot be written, `unavailable` when the disk refuses
   */
  constructor(path: string, bytes: number) {
    this.#path = path;
    try {
      this.#file = openSync(path, bytes === 0 ? "w" : "r+", 0o600);
    } catch (error) {
      throw bytes > 0 && (error as NodeJS.ErrnoException).code === "ENOENT"
        ? tooShort(path)
        : this.#unwritten(error, usage);
    }
    if (fstatSync(this.#file).size < bytes) throw tooShort(path);
    ftruncateSync(this.#file, bytes);
    this.#bytes = bytes;
  }

  /** Of the file, with all that was written. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @throws EvregError `unavailable` */
  add({ number, bytes }: Line, { error, details, code }: ErrorBody): void {
    const { field, errors } = details;
    const text = bytes === undefined ? {} : textOf(bytes);
    const record = {
      line: number,
      code,
      error,
      ...(typeof field === "string" ? { field } : {}),
      ...(Array.isArray(errors) && errors.length > 1 ? { errors } : {}),
      ...text,
    };
    const written = Buffer.from(`${encodeJson(record)}\n`);
    try {
      for (let at = 0; at < written.length;) {
        at += writeSync(this.#file, written, at, written.length - at, this.#bytes + at);
      }
      this.#bytes += written.length;
    } catch (failure) {
      throw this.#unwritten(failure, (message) => new EvregError("unavailable", message));
    }
  }

  /** Has the disk hold what was added, so that a checkpoint may count it. @throws EvregError `unavailable` */
  sync(): void {
    try {
      syncFile(this.#file, this.#path);
    } catch (failure) {
      throw this.#unwritten(failure, (message) => new EvregError("unavailable", message));
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  #unwritten(error: unknown, make: (message: string) => Error): Error {
    const [why] = (error as Error).message.split(", ");
    return make(`--rejects: ${this.#path} could not be written (${why}).`);
  }
}

function tooShort(path: string): Error {
  return usage(
    `--rejects: ${path} is not there or shorter than the checkpoint says. Give the file of the run before, or begin anew with another --checkpoint.`,
  );
}

function textOf(bytes: Uint8Array): object {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return isUtf8(buffer) ? { text: buffer.toString("utf8") } : { text_base64: buffer.toString("base64") };
}

/** Files that are written must not be the one that is read, nor each other. */
export function mustDiffer(files: Readonly<Record<string, string | undefined>>): void {
  const seen = new Map<string, string>();
  for (const [name, path] of Object.entries(files)) {
    if (path === undefined || path === "-") continue;
    const place = placeOf(path);
    const other = seen.get(place);
    if (other !== undefined)
      throw usage(`${other} and ${name} name the same file, ${path}; give each its own.`);
    seen.set(place, name);
  }
}

function placeOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
