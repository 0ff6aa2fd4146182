import type { IncomingMessage, ServerResponse } from "node:http";
import type { H3Event } from "h3";
import { EvregError } from "../domain/error.ts";
import { malformedField, readQuery } from "../domain/query.ts";
import type { QuerySchema } from "../domain/query.ts";
import { CallerGone, readNodeBody, readWebBody } from "./body.ts";
import { checkMediaType } from "./media-type.ts";
import { onceOver } from "./once-over.ts";

const NO_PARAMETERS: QuerySchema = { type: "object", properties: {}, additionalProperties: false };

/** One request as the routes see it, whether it came over a socket or in-process. */
export class Incoming {
  readonly #event: H3Event;
  readonly #node: { req: IncomingMessage; res: ServerResponse } | undefined;

  constructor(event: H3Event) {
    this.#event = event;
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
  whenOver(callback: () => void): void {
    if (this.#node === undefined) callback();
    else onceOver(this.#node.res, callback);
  }

  /** Aborted when the answer is out or its caller gone; never where there is no socket. */
  gone(): AbortSignal {
    const controller = new AbortController();
    if (this.#node !== undefined) onceOver(this.#node.res, () => controller.abort());
    return controller.signal;
  }

  /** Does work that ends with its caller, who then needs no answer: `CallerGone`. */
  async whileThere<T>(work: (gone: AbortSignal) => Promise<T>): Promise<T> {
    const gone = this.gone();
    return work(gone).catch((error: unknown) => {
      throw gone.aborted && error === gone.reason ? new CallerGone() : error;
    });
  }

  /** Ends the connection at once, whatever was still to be sent on it. */
  cut(): void {
    this.#node?.req.socket.destroy();
  }

  /** Has the connection kept while `work` goes on, however long nothing crosses it. */
  async inItsOwnTime<T>(work: () => Promise<T>): Promise<T> {
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

  /** A path parameter, decoded. `malformed` when it is not valid percent-encoding. */
  param(name: string): string {
    const raw = this.#event.context.params?.[name] ?? "";
    if (!raw.includes("%")) return raw;
    return decode(raw, "path");
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
    if (this.#node !== undefined) return readNodeBody(this.#node.req, this.#node.res, maxBytes);
    const { body, headers } = this.#event.req;
    return readWebBody(body, headers.get("content-length"), maxBytes);
  }
}

function decode(text: string, where: "path" | "query"): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new EvregError("malformed", `The ${where} of the address is not valid percent-encoded UTF-8.`);
  }
}
