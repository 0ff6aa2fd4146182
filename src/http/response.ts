import type { IncomingMessage, ServerResponse } from "node:http";
import { asEvregError, type EvregError, HTTP_STATUS } from "../domain/error.ts";
import { encodeJson, joinPieces } from "../json/raw-json.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import { eventLoop } from "../runtime/yielding.ts";
import { type ApiRequest, ClientDisconnected } from "./request.ts";

/** One answer before the headers that all answers share. */
export interface Reply {
  readonly status: number;
  /** A whole document, of JSON unless `mediaType` names another. A string goes out in one piece with its headers, which is the cheapest for small ones. */
  readonly body: string | Chunks | ByteStream;
  readonly headers?: readonly HeaderPair[];
  readonly mediaType?: string;
  /** How long caches may keep it; by default nobody does. */
  readonly cacheControl?: string;
  /** Called once the answer is out, or its client has disconnected. */
  readonly release?: () => void;
}

/** A document split anywhere. */
export type Chunks = readonly Uint8Array[];

/** A document that is too large to be held, or has no end; it is read as fast as its caller takes it. */
interface ByteStream {
  /** `undefined` for one that has no end, or whose end is not known yet. */
  readonly bytes: number | undefined;
  readonly chunks: AsyncIterable<Uint8Array>;
}

export type HeaderPair = readonly [name: string, value: string];

/** A reply of any JSON-shaped value. */
export function jsonReply(status: number, value: unknown, headers: readonly HeaderPair[] = []): Reply {
  return { status, body: encodeJson(value), headers };
}

/** @returns bytes in UTF-8 */
export function sizeOf(body: Reply["body"]): number {
  if (typeof body === "string") return Buffer.byteLength(body);
  if (isByteStream(body)) return body.bytes ?? 0;
  return body.reduce((bytes, piece) => bytes + piece.length, 0);
}

export function isByteStream(body: Reply["body"]): body is ByteStream {
  return typeof body === "object" && "chunks" in body;
}

/** Long enough for a store to recover from a full disk's cleaning or a restart, short enough not to lose a publisher. */
const RETRY_AFTER_SECONDS = "2";

/** The reply to any failure, in the one shape that all failures have. */
function failureReply(failure: unknown): Reply {
  const error = asEvregError(failure);
  const status = HTTP_STATUS[error.code];
  return jsonReply(status, error.body(), failureHeaders(error));
}

function failureHeaders({ code, details }: EvregError): readonly HeaderPair[] {
  if (code === "unauthorized") return [["www-authenticate", 'Bearer realm="evreg"']];
  if (code === "method_not_allowed") return [["allow", String(details["allow"])]];
  if (code === "unavailable" || code === "rate_limited") return [["retry-after", RETRY_AFTER_SECONDS]];
  return [];
}

/** What a part of a long list comes to at least. */
const PART_BYTES = 512 * 1024;

/** A part of a document, and whether nothing comes after it. */
export interface Part {
  readonly body: string | Chunks;
  readonly isLast: boolean;
}

/**
 * A document that is made part by part, as its caller takes it, so that it needs the memory of one part only. One of a single
 * part is whole at once. What fails in a later part ends the connection.
 */
export async function replyInParts(parts: AsyncGenerator<Part, void, void>): Promise<Reply> {
  const first = (await parts.next()).value!;
  if (first.isLast) return { status: 200, body: first.body };
  return { status: 200, body: { bytes: undefined, chunks: chunksFrom(first, parts) } };
}

/** @param part the first, in whose place comes each next one, so that no part is held longer than the next needs */
async function* chunksFrom(
  part: Part | void,
  parts: AsyncGenerator<Part, void, void>,
): AsyncGenerator<Uint8Array, void, void> {
  while (part !== undefined) {
    yield* chunksOf(part.body);
    part = (await parts.next()).value;
  }
}

function chunksOf(body: string | Chunks): Chunks {
  return typeof body === "string" ? [Buffer.from(body)] : body;
}

/** `{ data: [...] }` of records that may be large each, such as schemas, with others let in between two of them. */
export async function* recordParts(
  pages: AsyncIterable<readonly object[]>,
): AsyncGenerator<Part, void, void> {
  let pieces = ['{"data":['];
  let comma = "";
  let writtenBytes = 0;
  for await (const page of pages) {
    for (const one of page) {
      if (eventLoop.shouldYield()) await eventLoop.yield();
      const json = encodeJson(one);
      writtenBytes += json.length;
      pieces.push(comma, json);
      comma = ",";
    }
    if (writtenBytes < PART_BYTES) continue;
    yield { body: joined(pieces), isLast: false };
    pieces = [];
    writtenBytes = 0;
  }
  yield { body: joined([...pieces, "]}"]), isLast: true };
}

/** A piece that is larger goes out as it lies in memory; smaller ones are put together, as each costs a call to the system. */
const COPIED_BYTES = 64 * 1024;

/** A document of text and bytes, without making a string of it. */
export function joined(pieces: readonly (string | Uint8Array)[]): Chunks {
  const chunks: Uint8Array[] = [];
  let small: (string | Uint8Array)[] = [];
  const joinSmall = (): void => {
    if (small.length > 0) chunks.push(joinPieces(small));
    small = [];
  };
  for (const piece of pieces) {
    if (typeof piece === "string" || piece.length <= COPIED_BYTES) small.push(piece);
    else {
      joinSmall();
      chunks.push(piece);
    }
  }
  joinSmall();
  return chunks;
}

/**
 * What h3 gets in place of an answer: a promise that never settles, as the answer goes to node's own response. On the way
 * through h3 an answer would be two more objects, its headers two more lists, and its bytes two writes: a fifth of what a
 * small request costs. One object, not a promise for each request, which has nothing to tell either.
 */
// oxlint-disable-next-line unicorn/no-thenable -- it is only ever given to h3
export const ANSWERED: PromiseLike<never> = { then: () => ANSWERED };

/** Written at once: whoever takes no more than this in `STALLED_MS` is cut off. */
const PIECE_BYTES = 256 * 1024;
const STALLED_MS = 60_000;

/** Writes a piece once the one before it was taken. A failure on the way cannot be answered any more: it ends the connection. */
async function writeAsTaken(
  response: ServerResponse,
  chunks: Chunks | AsyncIterable<Uint8Array>,
  clock: Clock,
): Promise<void> {
  try {
    for await (const chunk of chunks) {
      for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
        if (response.destroyed) return;
        await untilTaken(response, clock, chunk.subarray(at, at + PIECE_BYTES));
      }
    }
    end(response, clock);
  } catch {
    response.destroy();
  }
}

/** @param piece what is to be written; without it, what was written before is to be taken */
function untilTaken(response: ServerResponse, clock: Clock, piece?: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      cancel();
      response.off("close", done);
      resolve();
    };
    const cancel = clock.setTimer(() => response.destroy(), STALLED_MS);
    response.on("close", done);
    if (piece !== undefined) response.write(piece, done);
  });
}

function end(response: ServerResponse, clock: Clock, body?: string | Uint8Array): void {
  response.end(body);
  // Of a small answer the system has nearly always taken all by now.
  if (response.writableLength > 0) void untilTaken(response, clock);
}

/** What nginx calls a request whose client left; it is only ever in the log. */
const CLIENT_DISCONNECTED_STATUS = 499;

/** So many characters of a reason are logged; one with a list of breaking changes may be long. */
const MAX_REASON = 300;

/** The end of every request: the shared headers, and its one line in the log. */
export class Responder {
  readonly #logger: Logger;
  readonly #clock: Clock;

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  replied(request: ApiRequest, reply: Reply): typeof ANSWERED {
    if (!request.isDisconnected) return this.#finish(request, reply);
    reply.release?.();
    return this.failed(request, new ClientDisconnected());
  }

  failed(request: ApiRequest, failure: unknown): typeof ANSWERED {
    if (failure instanceof ClientDisconnected) {
      const reply = { ...failureReply(undefined), status: CLIENT_DISCONNECTED_STATUS };
      return this.#finish(request, reply, "the client left");
    }
    const error = asEvregError(failure);
    if (error.code === "internal") {
      const { requestId, method, path } = request;
      const line = { requestId, method, path, err: error.cause ?? error };
      this.#logger.error(line, "a request failed inside evreg");
    }
    const reason = error.code === "internal" ? undefined : error.message;
    return this.#finish(request, failureReply(error), reason);
  }

  /** @param reason why it is refused */
  #finish(request: ApiRequest, reply: Reply, reason?: string): typeof ANSWERED {
    const { body, status, release } = reply;
    if (release !== undefined) request.onFinished(release);
    const bytes = sizeOf(body);
    const { requestId, method, path, nodeRequest, nodeResponse } = request;
    const level = isRoutine(method, path, status) ? "debug" : "info";
    if (level === "info" || this.#logger.isDebugEnabled) {
      const durationMs = this.#clock.monotonicMs() - request.startedMs;
      const why = reason === undefined ? undefined : { reason: reason.slice(0, MAX_REASON).toWellFormed() };
      const by = request.principal?.name;
      const who = { ...(by === undefined ? {} : { by }), address: request.clientAddress };
      this.#logger[level]({ requestId, method, path, status, durationMs, bytes, ...why, ...who }, "request");
    }
    if (request.isDisconnected) return ANSWERED;
    const headers = [
      "x-content-type-options",
      "nosniff",
      "cache-control",
      reply.cacheControl ?? "no-store",
      "x-request-id",
      requestId,
      "content-type",
      reply.mediaType ?? "application/json",
      "content-length",
      String(bytes),
    ];
    // An answer without content has no type and no length. All are in one list first: one that grows is copied.
    if (status === 204) headers.length -= 4;
    else if (isByteStream(body) && body.bytes === undefined) headers.length -= 2;
    for (const pair of reply.headers ?? []) headers.push(...pair);
    headers.push(...policyAt(path));
    if (!nodeRequest.complete && !dropsRest(nodeRequest)) headers.push("connection", "close");
    nodeResponse.writeHead(status, "", headers);
    if (method === "HEAD") end(nodeResponse, this.#clock);
    // The body goes in one write with the headers.
    else if (bytes <= PIECE_BYTES && typeof body === "string") end(nodeResponse, this.#clock, body);
    else if (bytes <= PIECE_BYTES && !isByteStream(body) && body.length === 1) {
      end(nodeResponse, this.#clock, body[0]);
    } else void writeAsTaken(nodeResponse, isByteStream(body) ? body.chunks : chunksOf(body), this.#clock);
    return ANSWERED;
  }
}

/**
 * Only what this server sends runs, nothing goes elsewhere, and no page of others shows this one. No script can make markup
 * of text.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

export const PAGE_PATH = "/ui";

const HEADERS: readonly string[] = [
  ["content-security-policy", CONTENT_SECURITY_POLICY],
  ["referrer-policy", "no-referrer"],
  ["cross-origin-opener-policy", "same-origin"],
  ["cross-origin-embedder-policy", "require-corp"],
  ["cross-origin-resource-policy", "same-origin"],
].flat();
const NONE: readonly string[] = [];

/** Headers of every answer at the page's addresses, refusals too: names and values by turns. */
function policyAt(path: string): readonly string[] {
  return path === PAGE_PATH || path.startsWith(`${PAGE_PATH}/`) ? HEADERS : NONE;
}

/** More than this of a refused body is read only for so many callers at once: to read those of many would take the time of all others. */
const LONG_REST_BYTES = 64 * 1024;
const READ_AT_ONCE = 16;
let readNow = 0;

/**
 * Reads the rest of a body and drops it: a close with unread bytes would reset the connection, and the caller could lose the answer
 * (RFC 9112, 9.6). `false` where the connection is to end instead.
 */
function dropsRest(request: IncomingMessage): boolean {
  const { expect, "content-length": declared, "transfer-encoding": encoding } = request.headers;
  // Who waits for a word to send the body sends none.
  if (expect !== undefined) return false;
  const isLong = declared === undefined ? encoding !== undefined : Number(declared) > LONG_REST_BYTES;
  if (isLong) {
    if (readNow >= READ_AT_ONCE) return false;
    readNow += 1;
    request.once("close", () => {
      readNow -= 1;
    });
  }
  request.resume();
  return true;
}

/**
 * Successful reads, publishes and claims: a line for each would be hundreds of gigabytes a day. Refusals are logged, and all other
 * changes.
 */
function isRoutine(method: string, path: string, status: number): boolean {
  // A consumer that ends leaves its long poll.
  if (status === CLIENT_DISCONNECTED_STATUS && OF_A_CONSUMER.test(path)) return true;
  // 207 is a batch of which some was refused. A backup exports all data.
  if (status >= 400 || status === 207 || path === "/v1/backup") return false;
  return method === "GET" || method === "HEAD" || path.startsWith("/v1/events") || OF_A_CONSUMER.test(path);
}

/** Consumers of pull subscriptions ask as often as events come. */
const OF_A_CONSUMER = /^\/v1\/subscriptions\/\d+\/(?:claims|finishes)$/;
