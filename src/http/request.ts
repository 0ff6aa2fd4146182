import type { H3Event } from "h3";
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { EvregError, tooLarge } from "../domain/error.ts";
import { malformedField, type InputSchema } from "../domain/request.ts";
import type { Principal } from "../domain/token.ts";
import { parseJson } from "../json/raw-json.ts";
import type { ByteBudget, ByteClaim, Reservation } from "../runtime/byte-budget.ts";
import { checkQuery, parameterOf } from "../service/requests.ts";
import { addressOf, isEnding, noticeEnd } from "./connections.ts";

/** The connection ended before the request did, so nobody can be answered. */
export class ClientDisconnected extends Error {
  override readonly name = "ClientDisconnected";
}

/** A body up to this size reserves no memory: every connection may have one. */
const FREE_BYTES = 16 * 1024;

const HANDED_OVER = Promise.resolve();

/** What proxies and tracers send: short, and nothing that could break a log line or a header. */
const WELL_FORMED = /^[\w.:+/=-]{1,128}$/;

/** How long a body waits for memory before it is refused. */
const BODY_WAIT_MS = 10_000;

/** One request as the routes see it. */
export class ApiRequest {
  readonly nodeRequest: IncomingMessage;
  readonly nodeResponse: ServerResponse;
  readonly startedMs: number;
  /** The caller's own id when it is well-formed, else a new one. It is in the answer's headers and in every log line. */
  readonly requestId: string;
  readonly #event: H3Event;
  readonly #bodies: ByteBudget;
  /** Aborted when the answer is sent or the client has disconnected: one for all that is done until then. */
  #finished: AbortSignal | undefined;
  /** Who makes it, once that is known. */
  principal: Principal | undefined;
  /** Its query, by the schema of its route. */
  query: Readonly<Record<string, unknown>> = {};

  /** @param bodies shared by the bodies of all requests */
  constructor(event: H3Event, bodies: ByteBudget, startedMs: number) {
    const { req, res } = event.runtime!.node!;
    this.nodeRequest = req as IncomingMessage;
    this.nodeResponse = res as ServerResponse;
    this.startedMs = startedMs;
    this.#event = event;
    this.#bodies = bodies;
    const id = this.header("x-request-id");
    this.requestId = id !== undefined && WELL_FORMED.test(id) ? id : randomUUID();
  }

  get method(): string {
    return this.#event.req.method;
  }

  /** The path as it is on the wire, without the query. */
  get path(): string {
    return this.#event.url.pathname;
  }

  /** Calls back once, when the answer is sent or the client has disconnected. */
  onFinished(callback: () => void): void {
    if (this.isDisconnected) callback();
    else this.nodeResponse.once("close", callback);
  }

  /** Whether the client is gone, so that nothing can be written to it. */
  get isDisconnected(): boolean {
    return this.nodeRequest.socket.destroyed || this.nodeResponse.destroyed;
  }

  /** Does work that ends when the client disconnects, and then throws `ClientDisconnected`. */
  async untilDisconnect<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#finished === undefined) {
      const controller = new AbortController();
      this.#finished = controller.signal;
      this.onFinished(() => controller.abort());
      noticeEnd(this.nodeRequest.socket);
    }
    const signal = this.#finished;
    return work(signal).catch((error: unknown) => {
      throw signal.aborted && error === signal.reason ? new ClientDisconnected() : error;
    });
  }

  /** Ends the connection at once, whatever was still to be sent on it. */
  disconnect(): void {
    this.nodeRequest.socket.destroy();
  }

  /** The address of the connection, for people. */
  get clientAddress(): string | undefined {
    const { remoteAddress: address } = this.nodeRequest.socket;
    return address?.startsWith("::ffff:") === true ? address.slice("::ffff:".length) : address;
  }

  /** A claim on memory for this client: whoever has its token, or else its address. */
  claim(bytes: number): ByteClaim {
    return { bytes, caller: this.principal?.tokenId ?? addressOf(this.nodeRequest.socket) };
  }

  /** @param name in lower case */
  header(name: string): string | undefined {
    const value = this.nodeRequest.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  }

  /** A path parameter, decoded. `malformed` when it is not valid percent-encoding, or holds a NUL. */
  param(name: string): string {
    const raw = this.#event.context.params?.[name] ?? "";
    if (!raw.includes("%")) return raw;
    const text = decode(raw, "path");
    if (text.includes("\0")) throw malformedField(name, "must not hold the character U+0000", text);
    return text;
  }

  /** A path parameter that is a rowid. `malformed` for anything else. */
  id(): number {
    const text = this.param("id");
    const id = Number(text);
    if (/^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(id)) return id;
    throw malformedField("id", "must be a whole number from 1", text);
  }

  /** Reads the query by a schema, before anything is read or reserved for the request. `malformed` for anything unknown or ill-formed. */
  readQuery(schema: InputSchema): void {
    const { search } = this.#event.url;
    if (search.length <= 1) return;
    if (search.includes("%")) decode(search, "query");
    this.query = checkQuery(schema, typedQuery(schema, new URLSearchParams(search)));
  }

  /** The body as JSON. */
  async json(maxBytes: number): Promise<unknown> {
    return parseJson(await this.body(maxBytes));
  }

  /**
   * The body's bytes, at most `maxBytes`. A larger declared length is refused before the first byte is read, an undeclared
   * one as soon as it is passed. Beyond `FREE_BYTES` a body reserves memory for its declared length, or for `maxBytes`;
   * nothing more is read before that.
   * @throws EvregError `unsupported_media_type` unless it is plain JSON; `too_large` with `{ limit, size }`, where `size`
   * is the declared length or what had arrived; `malformed` without a body; `unavailable` without memory
   */
  async body(maxBytes: number): Promise<Uint8Array> {
    checkMediaType(this.header("content-type"), this.header("content-encoding"));
    const request = this.nodeRequest;
    const { "content-length": declared, expect } = request.headers;
    const longest = declared === undefined ? maxBytes : Number(declared);
    if (longest > maxBytes) throw tooLarge("request body", longest, maxBytes);
    // Only now is it certain that the body is read.
    if (expect !== undefined && /^100-continue$/i.test(expect)) this.nodeResponse.writeContinue();
    if (declared !== undefined && longest <= FREE_BYTES) {
      // After this call node hands over what came together with the headers: mostly the whole body.
      await HANDED_OVER;
      const whole = request.readableLength === longest && !isEnding(request.socket) ? request.read() : null;
      if (whole !== null) return whole as Uint8Array;
    }
    return this.#readBody(longest, maxBytes);
  }

  /**
   * Memory of a large body is reserved until its request has ended: the answer often refers to the body.
   * @param longest that it can be: its declared length, or `maxBytes`
   */
  async #readBody(longest: number, maxBytes: number): Promise<Uint8Array> {
    const { socket } = this.nodeRequest;
    let reservation: Reservation | undefined;
    // One buffer: a list of chunks of a byte each would take a hundred times their bytes.
    let bytes = Buffer.allocUnsafeSlow(Math.min(longest, FREE_BYTES));
    let size = 0;
    try {
      // A caller that is refused within its body gets its answer on the same connection.
      for await (const chunk of this.nodeRequest.iterator({ destroyOnReturn: false })) {
        const piece = chunk as Uint8Array;
        const sizeThen = size + piece.length;
        if (sizeThen > maxBytes) throw tooLarge("request body so far", sizeThen, maxBytes);
        if (sizeThen > bytes.length) {
          reservation = await this.#reserveForBody(longest);
          const whole = Buffer.allocUnsafeSlow(longest);
          whole.set(bytes.subarray(0, size));
          bytes = whole;
        }
        bytes.set(piece, size);
        size = sizeThen;
      }
    } catch (error) {
      // Its bytes count as free from here on, so they are freed at once.
      bytes.buffer.transfer(0);
      reservation?.release();
      throw error instanceof EvregError ? error : new ClientDisconnected();
    }
    // It came too late, and that was its answer.
    if (isEnding(socket)) throw new ClientDisconnected();
    if (size === 0) throw new EvregError("malformed", "The request has no body; send a JSON object.");
    return bytes.subarray(0, size);
  }

  async #reserveForBody(bytes: number): Promise<Reservation> {
    const reservation = await this.untilDisconnect((signal) =>
      this.#bodies.reserve(this.claim(bytes), BODY_WAIT_MS, signal),
    );
    this.onFinished(() => reservation.release());
    return reservation;
  }
}

function decode(text: string, where: "path" | "query"): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new EvregError("malformed", `The ${where} of the address is not valid percent-encoded UTF-8.`);
  }
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json[ \t]*(?:;|$)/i;

/** Requires plain JSON. This also keeps out the simple forms of web pages, which cannot send this type. */
function checkMediaType(contentType: string | undefined, contentEncoding: string | undefined): void {
  if (contentType === undefined || !JSON_TYPE.test(contentType)) {
    const found =
      contentType === undefined ? "request has no `Content-Type`" : `body has the type ${quote(contentType)}`;
    throw unsupported(`The ${found}; send \`Content-Type: application/json\`.`);
  }
  if (contentEncoding !== undefined && !/^(?:identity)?$/i.test(contentEncoding.trim())) {
    throw unsupported(`The body's encoding is ${quote(contentEncoding)}; send it uncompressed.`);
  }
}

function unsupported(message: string): EvregError {
  return new EvregError("unsupported_media_type", message);
}

function quote(header: string): string {
  return JSON.stringify(header.slice(0, 100));
}

/**
 * The values of a query by the types in its schema.
 * @throws `malformed` for a parameter that is unknown or given twice: a typo must not pass unseen
 */
export function typedQuery(schema: InputSchema, params: URLSearchParams): Record<string, unknown> {
  const query: Record<string, unknown> = {};
  for (const [name, text] of params) {
    const { type } = parameterOf(schema, name, text);
    if (Object.hasOwn(query, name)) throw malformedField(name, "is given twice", text);
    query[name] = valueOf(type, text);
  }
  return query;
}

/** The value that a text of a query stands for; the text itself where it is none of the type. */
function valueOf(type: unknown, text: string): unknown {
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : text;
  // "+1", "1.0", "1e3", "0x1" and " 1" are numbers to JavaScript, and mistakes here.
  const isWhole = type === "integer" && /^(?:0|-?[1-9]\d*)$/.test(text);
  return isWhole && Number.isSafeInteger(Number(text)) ? Number(text) : text;
}
