import type { H3Event } from "h3";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { EvregError } from "../domain/error.ts";
import { malformedField, type QuerySchema } from "../domain/request.ts";
import type { ByteBudget, ByteClaim, Reservation } from "../runtime/byte-budget.ts";
import { readQuery } from "../service/requests.ts";
import { type BodyMemory, ClientDisconnected, readNodeBody, readWebBody } from "./body.ts";
import { addressOf } from "./connections.ts";

const NO_PARAMETERS: QuerySchema = { type: "object", properties: {}, additionalProperties: false };

/** How long a body waits for memory before it is refused. */
const BODY_WAIT_MS = 10_000;

/** One request as the routes see it, whether it came over a socket or in-process. */
export class ApiRequest {
  readonly #event: H3Event;
  readonly #node: { req: IncomingMessage; res: ServerResponse } | undefined;
  readonly #bodies: ByteBudget;
  /** Of a large body, until its request has ended: the answer is often part of the body. */
  #reservation: Reservation | undefined;
  /** The same object for all requests with one token, once it is known; `undefined` without one. */
  token: unknown;

  /** @param bodies shared by the bodies of all requests */
  constructor(event: H3Event, bodies: ByteBudget) {
    this.#event = event;
    this.#bodies = bodies;
    const node = event.runtime?.node;
    this.#node =
      node?.res === undefined ? undefined : (node as { req: IncomingMessage; res: ServerResponse });
  }

  get method(): string {
    return this.#event.req.method;
  }

  /** As it is on the wire, without the query. */
  get path(): string {
    return this.#event.url.pathname;
  }

  /** The node request, when there is a socket. */
  get nodeRequest(): IncomingMessage | undefined {
    return this.#node?.req;
  }

  /** Calls back once, when the answer is out or the client has disconnected; at once without a socket. */
  onFinished(callback: () => void): void {
    if (this.#node === undefined) callback();
    else onFinished(this.#node.res, callback);
  }

  /** Aborted when the answer is out or the client has disconnected; never without a socket. */
  disconnected(): AbortSignal {
    const controller = new AbortController();
    if (this.#node !== undefined) onFinished(this.#node.res, () => controller.abort());
    return controller.signal;
  }

  /** Does work that ends when the client disconnects, and then throws `ClientDisconnected`. */
  async untilDisconnect<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const signal = this.disconnected();
    return work(signal).catch((error: unknown) => {
      throw signal.aborted && error === signal.reason ? new ClientDisconnected() : error;
    });
  }

  /** Ends the connection at once, whatever was still to be sent on it. */
  disconnect(): void {
    this.#node?.req.socket.destroy();
  }

  /** The answer of so many bytes is being sent: the body's memory is released when it is out, or its client too slow. */
  responseStarted(bytes: number): void {
    this.#reservation?.startTransfer(bytes);
    if (this.#reservation !== undefined) this.onFinished(() => this.#reservation?.release());
  }

  /** So many bytes of memory for this client. */
  claim(bytes: number, evict: () => void = () => this.disconnect()): ByteClaim {
    const address = this.#node === undefined ? undefined : addressOf(this.#node.req.socket);
    return { bytes, caller: { address, token: this.token }, evict };
  }

  /** Keeps the connection open while `work` goes on, however long nothing crosses it. */
  async withoutIdleTimeout<T>(work: () => Promise<T>): Promise<T> {
    const socket = this.#node?.req.socket;
    const idleTimeoutMs = socket?.timeout ?? 0;
    socket?.setTimeout(0);
    try {
      return await work();
    } finally {
      socket?.setTimeout(idleTimeoutMs);
    }
  }

  /** @param name in lower case */
  header(name: string): string | undefined {
    if (this.#node === undefined) return this.#event.req.headers.get(name) ?? undefined;
    const value = this.#node.req.headers[name];
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
   * The body's bytes. `unsupported_media_type` unless it is plain JSON, `too_large` past `maxBytes`, `malformed` when
   * there is none.
   */
  body(maxBytes: number): Promise<Uint8Array> {
    checkMediaType(this.header("content-type"), this.header("content-encoding"));
    if (this.#node !== undefined)
      return readNodeBody(this.#node.req, this.#node.res, maxBytes, () => this.#bodyMemory());
    const { body, headers } = this.#event.req;
    return readWebBody(body, headers.get("content-length"), maxBytes);
  }

  #bodyMemory(): BodyMemory {
    const bodies = this.#bodies;
    const keep = <T extends Reservation | undefined>(reservation: T): T => {
      this.#reservation = reservation;
      return reservation;
    };
    const claim = (bytes: number, evict: Parameters<BodyMemory["reserve"]>[1]): ByteClaim =>
      this.claim(bytes, () => evict(bodies.refused()));
    return {
      tryReserve: (bytes, evict) => keep(bodies.tryReserve(claim(bytes, evict))),
      reserve: (bytes, evict) =>
        this.untilDisconnect((signal) => bodies.reserve(claim(bytes, evict), BODY_WAIT_MS, signal)).then(
          keep,
        ),
    };
  }
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

/** By connection: with a listener for each request of one, node would warn of a leak. */
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
