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
  /** What a large body has of the memory for bodies, until its request is over: what is answered is often part of it. */
  #share: Reservation | undefined;
  /** The same for all requests with one token, once it is known; `undefined` for one without. */
  token: unknown;

  /** @param bodies what the bodies of all requests have together */
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

  /** Calls back once, when the answer is out or its caller gone; at once when there is no socket. */
  onFinished(callback: () => void): void {
    if (this.#node === undefined) callback();
    else onFinished(this.#node.res, callback);
  }

  /** Aborted when the answer is out or its caller gone; never where there is no socket. */
  disconnected(): AbortSignal {
    const controller = new AbortController();
    if (this.#node !== undefined) onFinished(this.#node.res, () => controller.abort());
    return controller.signal;
  }

  /** Does work that ends with its caller, who then needs no answer: `CallerGone`. */
  async untilDisconnect<T>(work: (gone: AbortSignal) => Promise<T>): Promise<T> {
    const gone = this.disconnected();
    return work(gone).catch((error: unknown) => {
      throw gone.aborted && error === gone.reason ? new ClientDisconnected() : error;
    });
  }

  /** Ends the connection at once, whatever was still to be sent on it. */
  disconnect(): void {
    this.#node?.req.socket.destroy();
  }

  /** Its answer of so many bytes is on its way: what its body has goes back once that is out, or its caller too slow. */
  responseStarted(bytes: number): void {
    const share = this.#share;
    if (share === undefined) return;
    share.startTransfer(bytes);
    this.onFinished(() => share.release());
  }

  /** So many bytes of memory, for this caller. */
  claim(bytes: number, evict: () => void = () => this.disconnect()): ByteClaim {
    const address = this.#node === undefined ? undefined : addressOf(this.#node.req.socket);
    return { bytes, caller: { address, token: this.token }, evict };
  }

  /** Has the connection kept while `work` goes on, however long nothing crosses it. */
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
      return readNodeBody(this.#node.req, this.#node.res, maxBytes, () => this.#room());
    const { body, headers } = this.#event.req;
    return readWebBody(body, headers.get("content-length"), maxBytes);
  }

  #room(): BodyMemory {
    const bodies = this.#bodies;
    const keep = <T extends Reservation | undefined>(share: T): T => {
      this.#share = share;
      return share;
    };
    const claim = (bytes: number, evict: Parameters<BodyMemory["reserve"]>[1]): ByteClaim =>
      this.claim(bytes, () => evict(bodies.refused()));
    return {
      tryReserve: (bytes, evict) => keep(bodies.tryReserve(claim(bytes, evict))),
      reserve: (bytes, evict) =>
        this.untilDisconnect((gone) => bodies.reserve(claim(bytes, evict), BODY_WAIT_MS, gone)).then(keep),
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

/** Demands a body of plain JSON in UTF-8. Also what keeps a web page's simple forms out: those cannot send this type. */
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

/** By connection, as a listener for each of many requests on one would have node warn of a leak. */
const pendingOf = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls back once, when the answer is out or its connection gone. The answer's own `close` is not enough: not every
 * version of node emits one for an answer that was still waiting behind others when its connection closed.
 */
function onFinished(response: ServerResponse, callback: () => void): void {
  const { socket } = response.req;
  if (socket.destroyed || response.destroyed) {
    callback();
    return;
  }
  const pending = pendingOf.get(socket) ?? pendingAt(socket);
  const over = (): void => {
    if (pending.delete(over)) callback();
  };
  pending.add(over);
  response.once("close", over);
}

function pendingAt(socket: Socket): Set<() => void> {
  const pending = new Set<() => void>();
  pendingOf.set(socket, pending);
  socket.once("close", () => {
    for (const over of pending) over();
  });
  return pending;
}
