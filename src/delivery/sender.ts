import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import { LRUCache } from "lru-cache";
import { buildConnector, type Client } from "undici";
import { literalAddress } from "../domain/handler-url.ts";
import type { Clock } from "../runtime/clock.ts";
import { type AddressGuard, notAllowed } from "./address-guard.ts";
import { attemptErrorCode, HandlerConnection, Exchange, type SendResult } from "./exchange.ts";

interface SendRequest {
  /** Absolute, `https:` or `http:`. */
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
  /** Replaces the time that the sender gives a request, unless it is `null`. */
  readonly timeoutMs?: number | null;
  /** Has a connection of its own, which is used for nothing else. */
  readonly isAlone?: boolean;
}

interface SenderOptions {
  readonly clock: Clock;
  readonly guard: AddressGuard;
  /** Whether a handler may have an `http:` URL; it may have been registered when that was allowed. */
  readonly allowHttp: boolean;
  /** One deadline over look-up, connecting, headers and body. The first two have no longer, whatever a request is given. */
  readonly timeoutMs: number;
  readonly keepAliveMs?: number;
  /** How long a connection may be reused, however busy it is. */
  readonly lifeMs?: number;
  /** Whom to trust; those that Node trusts, without it. */
  readonly secureContext?: SecureContext | undefined;
}

/**
 * How long an unused connection stays open where the handler sends no `Keep-Alive` header. Many servers close theirs
 * after 5 s, and a request sent at that moment fails.
 */
const DEFAULT_KEEP_ALIVE_MS = 4_000;
const KEEP_ALIVE_MS = 30_000;
/**
 * A connection leads to where its name led, and was allowed to lead, when it was made. Without a limit, a handler that is
 * always busy would be sent to that address for ever, though its name has moved.
 */
const LIFE_MS = 5 * 60_000;
const MAX_ANSWER_HEADER_BYTES = 16 * 1_024;
const MAX_CONNECTORS = 1_000;

/**
 * Trusts authorities beside those that Node trusts by itself (its own, NODE_EXTRA_CA_CERTS, NODE_USE_SYSTEM_CA). To be made
 * once: reading some hundred certificates takes milliseconds.
 * @param ca PEM
 */
export function trusting(ca: string): SecureContext {
  return createSecureContext({ ca: [...getCACertificates("default"), ca] });
}

/**
 * Posts over HTTP/1.1. It follows no redirect, knows no proxy, always verifies certificates, decompresses nothing, and
 * reads no more of an answer than is stored and a little to spare the connection.
 */
export class Sender {
  readonly #options: SenderOptions;
  readonly #clientOptions: Client.Options;
  /** By origin: the guard must know the port, which a look-up does not get, and each keeps its TLS sessions. */
  readonly #connectors = new LRUCache<string, buildConnector.connector>({ max: MAX_CONNECTORS });
  /**
   * All that there are. They are pooled here and not by undici, whose pool searches all of an origin's for each request, does not
   * report which one carries it, and stays for ever once it had to queue a request for an origin that cannot be reached.
   */
  readonly #connections = new Set<HandlerConnection>();
  /** Those without a request, by origin. The one that was used last is used next, so that the others come to be closed. */
  readonly #idle = new Map<string, HandlerConnection[]>();

  constructor(options: SenderOptions) {
    const { keepAliveMs = KEEP_ALIVE_MS } = options;
    this.#options = options;
    this.#clientOptions = {
      // Over HTTP/2 undici 8 bounds no headers and sends again by itself what a GOAWAY refused, after which others to the
      // same origin wait in vain; and what is read of a connection would be that of many attempts.
      allowH2: false,
      pipelining: 1,
      maxHeaderSize: MAX_ANSWER_HEADER_BYTES,
      keepAliveTimeout: Math.min(keepAliveMs, DEFAULT_KEEP_ALIVE_MS),
      keepAliveMaxTimeout: keepAliveMs,
      // `send` sets one deadline over everything.
      headersTimeout: 0,
      bodyTimeout: 0,
    };
  }

  connections(): number {
    return this.#connections.size;
  }

  /**
   * Posts once. Every way it can end is a value, which `done` gets once, before this returns when nothing can be sent.
   * @returns what can be aborted
   */
  send(request: SendRequest, done: (result: SendResult) => void): Exchange | undefined {
    const { url, headers, body, isAlone = false } = request;
    const timeoutMs = request.timeoutMs ?? this.#options.timeoutMs;
    const destination = destinationOf(url);
    if (destination === undefined) {
      done({ errorCode: "protocol_error" });
      return undefined;
    }
    const { origin, path } = destination;
    const connection = isAlone ? this.#open(destination) : this.#take(destination);
    const ended = (result: SendResult, isReusable: boolean): void => {
      cancelTimeout();
      this.#release(connection, isReusable && !isAlone, () => done(result));
    };
    const exchange = new Exchange(connection, ended);
    const cancelTimeout = this.#options.clock.setTimer(() => exchange.abort("timeout"), timeoutMs);
    try {
      connection.dispatch({ origin, path, method: "POST", headers, body }, exchange);
    } catch (error) {
      exchange.abort(attemptErrorCode(error));
    }
    return exchange;
  }

  /** Ends all requests as `interrupted`, and drops all connections. */
  close(): void {
    for (const connection of this.#connections) this.#discard(connection);
  }

  /** One that is free, or a new one; to be followed by `#release`. */
  #take(destination: Destination): HandlerConnection {
    const idle = this.#idle.get(destination.origin) ?? [];
    for (let last = idle.at(-1); last !== undefined; last = idle.at(-1)) {
      if (this.#isUsable(last)) {
        this.#removeIdle(last);
        return last;
      }
      this.#discard(last);
    }
    return this.#open(destination);
  }

  /**
   * Takes a connection back after an exchange; one that has not ended well costs its connection.
   * @param done called once it is free or gone: what is sent next may then go over it
   */
  #release(connection: HandlerConnection, isReusable: boolean, done: () => void): void {
    connection.release();
    if (!isReusable) {
      this.#discard(connection);
      return done();
    }
    afterTurn(() => {
      // It may have closed meanwhile.
      if (!this.#isUsable(connection)) this.#discard(connection);
      else if (this.#connections.has(connection)) {
        const idle = this.#idle.get(connection.origin) ?? [];
        idle.push(connection);
        this.#idle.set(connection.origin, idle);
      }
      done();
    });
  }

  #isUsable(connection: HandlerConnection): boolean {
    return connection.isUsable(this.#options.lifeMs ?? LIFE_MS);
  }

  #open(destination: Destination): HandlerConnection {
    const { origin } = destination;
    const connect = this.#connectors.get(origin) ?? this.#connectorTo(destination);
    this.#connectors.set(origin, connect);
    const connection = new HandlerConnection(origin, connect, this.#clientOptions, () => {
      this.#discard(connection);
    });
    this.#connections.add(connection);
    return connection;
  }

  #discard(connection: HandlerConnection): void {
    if (!this.#connections.delete(connection)) return;
    this.#removeIdle(connection);
    connection.destroy();
  }

  #removeIdle(connection: HandlerConnection): void {
    const { origin } = connection;
    const idle = this.#idle.get(origin) ?? [];
    const at = idle.lastIndexOf(connection);
    if (at !== -1) idle.splice(at, 1);
    if (idle.length === 0) this.#idle.delete(origin);
  }

  #connectorTo({ origin, port, literal }: Destination): buildConnector.connector {
    const { guard, allowHttp, timeoutMs, secureContext } = this.#options;
    const refusal =
      allowHttp || !origin.startsWith("http:")
        ? undefined
        : notAllowed(origin, "it is http: and not https:. An operator can open it with delivery.allowHttp.");
    const connect = buildConnector({
      lookup: guard.lookupFor(port),
      timeout: timeoutMs,
      allowH2: false,
      // Set explicitly, so that NODE_TLS_REJECT_UNAUTHORIZED cannot turn it off.
      rejectUnauthorized: true,
      ...(secureContext === undefined ? {} : { secureContext }),
    });
    return (target, callback) => {
      // The look-up that guards a connection never runs for a literal address.
      const refused = refusal ?? (literal === undefined ? undefined : guard.check(literal, port));
      if (refused === undefined) return connect(target, callback);
      setImmediate(callback, refused, null);
    };
  }
}

/**
 * A handler may close behind its answer without having said so. What comes right behind it is read in the next turn of the
 * event loop: an answer is read between two immediates, so only the second one comes after that.
 */
function afterTurn(callback: () => void): void {
  setImmediate(() => setImmediate(callback));
}

interface Destination {
  readonly origin: string;
  /** The path with its query. */
  readonly path: string;
  readonly port: number;
  /** Its host, when that is an address and no name. */
  readonly literal: string | undefined;
}

const MAX_DESTINATIONS = 10_000;
const destinations = new LRUCache<string, Destination>({ max: MAX_DESTINATIONS });

/**
 * Parses a handler's address, each once, as that takes longer than nearly anything else in a delivery.
 * `undefined` for a text that is no URL.
 */
export function destinationOf(handler: string): Destination | undefined {
  const known = destinations.get(handler);
  if (known !== undefined) return known;
  if (!URL.canParse(handler)) return undefined;
  const url = new URL(handler);
  const { origin, pathname, search, protocol } = url;
  const port = Number(url.port) || (protocol === "http:" ? 80 : 443);
  const destination = { origin, path: pathname + search, port, literal: literalAddress(url) };
  destinations.set(handler, destination);
  return destination;
}
