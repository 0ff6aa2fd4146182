import { HTTPResponse } from "h3";
import { randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import { asEvregError, type EvregError, HTTP_STATUS } from "../domain/error.ts";
import { encodeJson } from "../json/raw-json.ts";
import { eventLoop } from "../runtime/yielding.ts";

/** One answer before the headers that all answers share. */
export interface Reply {
  readonly status: number;
  /** A whole document, of JSON unless `mediaType` names another. A string goes out in one piece with its headers, which is the cheapest for small ones. */
  readonly body: string | Pieces | Flow;
  readonly headers?: readonly HeaderPair[];
  readonly mediaType?: string;
  /** Called once the answer is out, or its caller gone. */
  readonly release?: () => void;
}

/** A document cut up anywhere, to be written one piece after the other. */
export type Pieces = readonly Uint8Array[];

/** A document that is too large to be held; it is read as fast as its caller takes it. */
interface Flow {
  readonly bytes: number;
  readonly pieces: AsyncIterable<Uint8Array>;
}

export type HeaderPair = readonly [name: string, value: string];

/** A reply of any JSON-shaped value. */
export function reply(status: number, value: unknown, headers?: readonly HeaderPair[]): Reply {
  const body = encodeJson(value);
  return headers === undefined ? { status, body } : { status, body, headers };
}

/** @returns bytes in UTF-8 */
export function sizeOf(body: Reply["body"]): number {
  if (typeof body === "string") return Buffer.byteLength(body);
  if (isFlow(body)) return body.bytes;
  return body.reduce((bytes, piece) => bytes + piece.length, 0);
}

export function isFlow(body: Reply["body"]): body is Flow {
  return typeof body === "object" && "pieces" in body;
}

/** Long enough for a store to recover from a full disk's cleaning or a restart, short enough not to lose a publisher. */
const RETRY_AFTER_SECONDS = "2";

/** The reply to any failure, in the one shape that all failures have. */
export function failureReply(failure: unknown): Reply {
  const error = asEvregError(failure);
  const status = HTTP_STATUS[error.code];
  return reply(status, error.body(), failureHeaders(error));
}

function failureHeaders(error: EvregError): readonly HeaderPair[] | undefined {
  const { code } = error;
  if (code === "unauthorized") return [["www-authenticate", 'Bearer realm="evreg"']];
  if (code === "method_not_allowed") return [["allow", String(error.details["allow"])]];
  if (code === "unavailable" || code === "rate_limited") return [["retry-after", RETRY_AFTER_SECONDS]];
  return undefined;
}

/** So few records are written in one go, each being bounded by what a request may bring. */
const FEW = 5;
/** What a document of more comes to at least. */
const LIKELY_BYTES = 16 * 1024;

/** `{ data: [...] }` of records that may be large each, such as schemas, with others let in between two of them. */
export async function listReply(status: number, data: readonly object[]): Promise<Reply> {
  if (data.length <= FEW) return reply(status, { data });
  const writer = new PieceWriter(LIKELY_BYTES);
  let before = '{"data":[';
  for (const one of data) {
    if (eventLoop.shouldYield()) await eventLoop.yield();
    writer.text(before + encodeJson(one));
    before = ",";
  }
  writer.text("]}");
  return { status, body: writer.end() };
}

/** Small pieces are put together up to this size, as each costs a call to the system. */
const BLOCK_BYTES = 512 * 1024;
/** What is larger goes out as it lies in memory. */
const COPIED_BYTES = 64 * 1024;

/** Puts a document of text and bytes together without making a string of it. */
export class PieceWriter {
  readonly #pieces: Uint8Array[] = [];
  #block: Buffer;
  #used = 0;

  /** @param likelyBytes what it may come to; one of up to a block's size is then one piece */
  constructor(likelyBytes: number) {
    this.#block = Buffer.allocUnsafeSlow(Math.min(likelyBytes, BLOCK_BYTES));
  }

  text(text: string): void {
    // A UTF-16 unit makes at most three bytes.
    this.#makeRoom(text.length * 3);
    this.#used += this.#block.write(text, this.#used);
  }

  bytes(bytes: Uint8Array): void {
    if (bytes.length > COPIED_BYTES) {
      this.#flush(0);
      this.#pieces.push(bytes);
      return;
    }
    this.#makeRoom(bytes.length);
    this.#block.set(bytes, this.#used);
    this.#used += bytes.length;
  }

  end(): Pieces {
    this.#flush(0);
    return this.#pieces;
  }

  #makeRoom(bytes: number): void {
    if (this.#used + bytes > this.#block.length) this.#flush(Math.max(bytes, BLOCK_BYTES));
  }

  #flush(nextBytes: number): void {
    if (this.#used > 0) this.#pieces.push(this.#block.subarray(0, this.#used));
    // What is left of the block is still free to be written to.
    this.#block = nextBytes === 0 ? this.#block.subarray(this.#used) : Buffer.allocUnsafeSlow(nextBytes);
    this.#used = 0;
  }
}

export type AnswerBody = string | Uint8Array | Readable | null;

/**
 * A finished answer as h3 takes it. Its headers stay a list of pairs, which srvx writes as it is: as a `Headers` object,
 * built and read again for every answer, they would cost a quarter of the requests a second.
 */
export class HttpAnswer extends HTTPResponse {
  readonly #pairs: readonly HeaderPair[];

  constructor(status: number, pairs: readonly HeaderPair[], body: AnswerBody) {
    super(body, { status });
    this.#pairs = pairs;
  }

  override get headers(): Headers {
    return this.#pairs as unknown as Headers;
  }
}

/** What proxies and tracers send: short, and nothing that could break a log line or a header. */
const WELL_FORMED = /^[\w.:+/=-]{1,128}$/;

/** The caller's own id when it is well-formed, else a new one. It is in the answer's headers and in every log line. */
export function requestIdOf(header: string | undefined): string {
  return header !== undefined && WELL_FORMED.test(header) ? header : randomUUID();
}
