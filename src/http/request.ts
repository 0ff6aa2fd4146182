import type { H3Event } from "h3";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { EvregError } from "../domain/error.ts";
import { malformedField, type QuerySchema } from "../domain/request.ts";
import type { Principal } from "../domain/token.ts";
import type { ByteBudget, ByteClaim, Reservation } from "../runtime/byte-budget.ts";
import { readQuery } from "../service/requests.ts";
import { addressOf, isEnding } from "./connections.ts";

/** The connection ended before the request did, so nobody can be answered. */
export class ClientDisconnected extends Error {
  override readonly name = "ClientDisconnected";
}

const NO_PARAMETERS: QuerySchema = { type: "object", properties: {}, additionalProperties: false };

/** A body up to this size reserves no memory: every connection may have one. */
const FREE_BYTES = 16 * 1024;

const HANDED_OVER = Promise.resolve();

/** How long a body waits for memory before it is refused. */
const BODY_WAIT_MS = 10_000;

/** One request as the routes see it. */
export class ApiRequest {
  readonly nodeRequest: IncomingMessage;
  readonly nodeResponse: ServerResponse;
  readonly #event: H3Event;
  readonly #bodies: ByteBudget;
  /** Aborted when the answer is sent or the client has disconnected: one for all that is done until then. */
  #finished: AbortSignal | undefined;
  /** Memory of a large body, until its request has ended: the answer often refers to the body. */
  #reservation: Reservation | undefined;
  /** Which token it counts as in what callers share, once that is known; `undefined` without one. */
  token: number | undefined;
  /** Who makes it, once that is known. */
  principal: Principal | undefined;

  /** @param bodies shared by the bodies of all requests */
  constructor(event: H3Event, bodies: ByteBudget) {
    const { req, res } = event.runtime!.node!;
    this.nodeRequest = req as IncomingMessage;
    this.nodeResponse = res as ServerResponse;
    this.#event = event;
    this.#bodies = bodies;
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
    onFinished(this.nodeResponse, callback);
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

  /** The answer is being sent. The body's memory is released when it is out, or its client too slow. */
  responseStarted(bytes: number): void {
    const reservation = this.#reservation;
    if (reservation === undefined) return;
    reservation.startTransfer(bytes);
    this.onFinished(() => reservation.release());
  }

  /** A claim on memory for this client. */
  claim(bytes: number, evict: () => void = () => this.disconnect()): ByteClaim {
    return { bytes, caller: { address: addressOf(this.nodeRequest.socket), token: this.token }, evict };
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

  /** The query as `schema` reads it. `malformed` for anything unknown or ill-formed in it. */
  query(schema: QuerySchema): Record<string, unknown> {
    const { search } = this.#event.url;
    if (search.includes("%")) decode(search, "query");
    return readQuery(schema, new URLSearchParams(search));
  }

  /** `malformed` when there is one: a typo must not pass unseen. */
  checkNoQuery(): void {
    if (this.#event.url.search.length > 1) this.query(NO_PARAMETERS);
  }

  /**
   * The body's bytes, at most `maxBytes`. A larger declared length is refused before the first byte is read, an undeclared
   * one as soon as it is passed. Beyond `FREE_BYTES` a body reserves memory for its declared length, or for `maxBytes`;
   * nothing more is read before that.
   * @throws EvregError `unsupported_media_type` unless it is plain JSON; `too_large` with `{ limit, size }`, where `size`
   * is the declared length or what had arrived; `malformed` without a body; `unavailable` without memory, or when the
   * client is too slow while others wait
   */
  async body(maxBytes: number): Promise<Uint8Array> {
    checkMediaType(this.header("content-type"), this.header("content-encoding"));
    const request = this.nodeRequest;
    const { "content-length": declared, expect } = request.headers;
    const longest = declared === undefined ? maxBytes : Number(declared);
    if (longest > maxBytes) throw tooLarge(maxBytes, longest);
    // Only now is it certain that the body is read.
    if (expect !== undefined && /^100-continue$/i.test(expect)) this.nodeResponse.writeContinue();
    if (declared !== undefined && longest <= FREE_BYTES) {
      // After this call node hands over what came together with the headers: mostly the whole body.
      await HANDED_OVER;
      const whole = request.readableLength === longest && !isEnding(request.socket) ? request.read() : null;
      if (whole !== null) return whole as Uint8Array;
    }
    return this.#read(maxBytes, longest, declared !== undefined);
  }

  #read(maxBytes: number, longest: number, isDeclared: boolean): Promise<Uint8Array> {
    const request = this.nodeRequest;
    return new Promise((resolve, reject) => {
      let only: Uint8Array | undefined;
      let gathered: Buffer<ArrayBuffer> | undefined;
      let size = 0;
      let reservedBytes = FREE_BYTES;
      let isDone = false;
      const fail = (error: Error): void => {
        isDone = true;
        // Its bytes count as free from here on, so they are freed at once.
        gathered?.buffer.transfer(0);
        only = gathered = undefined;
        this.#reservation?.release();
        request.off("data", onData).pause();
        reject(error);
      };
      const add = (chunk: Uint8Array): void => {
        if (size === chunk.length) only = chunk;
        else {
          // Into one buffer: a list of chunks of a byte each would take a hundred times their bytes.
          if (gathered === undefined || gathered.length < size) {
            const newBytes = isDeclared ? longest : Math.max(2 * size, FREE_BYTES);
            const larger = Buffer.allocUnsafeSlow(Math.min(newBytes, longest, reservedBytes));
            larger.set(gathered ?? only ?? []);
            gathered = larger;
            only = undefined;
          }
          gathered.set(chunk, size - chunk.length);
        }
        this.#reservation?.transferred(chunk.length);
      };
      const granted = (reservation: Reservation): void => {
        this.#reservation = reservation;
        reservedBytes = maxBytes;
        reservation.startTransfer(0);
      };
      const evict = (): void => {
        if (isDone) this.disconnect();
        else fail(this.#bodies.refused(this.claim(0)));
      };
      const onData = (chunk: Uint8Array): void => {
        size += chunk.length;
        if (size > maxBytes) return fail(tooLarge(maxBytes, size));
        if (size <= reservedBytes) return add(chunk);
        const claim = this.claim(longest, evict);
        const immediate = this.#bodies.tryReserve(claim);
        if (immediate !== undefined) {
          granted(immediate);
          return add(chunk);
        }
        request.pause();
        void waitFor(claim, chunk);
      };
      const waitFor = async (claim: ByteClaim, chunk: Uint8Array): Promise<void> => {
        try {
          granted(await this.untilDisconnect((signal) => this.#bodies.reserve(claim, BODY_WAIT_MS, signal)));
        } catch (error) {
          if (!isDone) fail(error as Error);
          return;
        }
        if (isDone) this.#reservation?.release();
        else {
          add(chunk);
          request.resume();
        }
      };
      const onEnd = (): void => {
        // It was refused as too slow, and its end arrived before the connection's.
        if (isEnding(request.socket)) return onClose();
        if (isDone) return;
        isDone = true;
        // evreg works from here on, and the client waits.
        this.#reservation?.endTransfer();
        if (gathered !== undefined) resolve(gathered.subarray(0, size));
        else if (only !== undefined) resolve(only);
        else reject(new EvregError("malformed", "The request has no body; send a JSON object."));
      };
      // Comes in any case: after the end, or without one when the client disconnects.
      const onClose = (): void => {
        if (!isDone) fail(new ClientDisconnected("The connection ended before the request did."));
      };
      if (request.destroyed) onClose();
      else request.on("data", onData).on("end", onEnd).on("close", onClose);
    });
  }
}

function tooLarge(limit: number, size: number): EvregError {
  return new EvregError(
    "too_large",
    `The request body is larger than the ${limit} bytes allowed here (${size} so far).`,
    { limit, size },
  );
}

function decode(text: string, where: "path" | "query"): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new EvregError("malformed", `The ${where} of the address is not valid percent-encoded UTF-8.`);
  }
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json[ \t]*(?:;(.*))?$/i;
const CHARSET = /(?:^|;)[ \t]*charset[ \t]*=[ \t]*"?([^";\s]*)"?/i;

/** Requires plain JSON in UTF-8. This also keeps out the simple forms of web pages, which cannot send this type. */
function checkMediaType(contentType: string | undefined, contentEncoding: string | undefined): void {
  if (contentType !== "application/json") {
    if (contentType === undefined) {
      throw unsupported("The request has no `Content-Type`; send `Content-Type: application/json`.");
    }
    const parameters = JSON_TYPE.exec(contentType);
    if (parameters === null) {
      throw unsupported(`The body's type is ${quote(contentType)}; send \`Content-Type: application/json\`.`);
    }
    const charset = CHARSET.exec(parameters[1] ?? "")?.[1];
    if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
      throw unsupported(`The body's character set is ${quote(charset)}; JSON is sent in UTF-8.`);
    }
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

/** Connections have one listener each: node would warn of a leak if each request had its own. */
const pendingOf = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls back once, when the answer is out or its connection closed. The answer's own `close` is not enough: not every
 * version of node emits it for an answer that waited behind others when its connection closed.
 */
function onFinished(response: ServerResponse, callback: () => void): void {
  const { socket } = response.req;
  if (socket.destroyed || response.destroyed) {
    callback();
    return;
  }
  const pending = pendingOf.get(socket) ?? pendingAt(socket);
  const finish = (): void => {
    if (pending.delete(finish)) callback();
  };
  pending.add(finish);
  response.once("close", finish);
}

function pendingAt(socket: Socket): Set<() => void> {
  const pending = new Set<() => void>();
  pendingOf.set(socket, pending);
  socket.once("close", () => {
    for (const finish of pending) finish();
  });
  return pending;
}
