import { Socket } from "node:net";
import { buildConnector, type Client, type Dispatcher } from "undici";
import { LRUCache } from "lru-cache";
import { EvregError } from "../domain/error.ts";
import { literalAddress } from "../domain/handler-url.ts";
import type { AddressGuard } from "./address-guard.ts";
import { type Connect, Connection, type Exchange } from "./exchange.ts";

export interface ConnectionOptions {
  readonly guard: AddressGuard;
  /** Whether a handler may be one that is not encrypted to; it may have been registered when that was allowed. */
  readonly allowHttp: boolean;
  /** How long a connection may take to be made. */
  readonly timeoutMs: number;
  /** How many connections to one origin there may be. */
  readonly maxPerOrigin: number;
  /** For how long an unused connection may stay open. */
  readonly keepAliveMs?: number;
  /** For how long a connection may be used again, however busy it is. */
  readonly lifeMs?: number;
  /** PEM of a certificate authority to trust instead of the system's. */
  readonly ca?: string;
}

/** Each request has a connection to itself. */
interface Connections {
  /** Sends over a connection that is there or is made; where the origin has as many as it may, over the next that is free. */
  send(destination: Destination, request: Dispatcher.DispatchOptions, exchange: Exchange): void;
  /** To be called after each exchange; one that has not ended well costs its connection. */
  ended(destination: Destination, connection: Connection | undefined, isReusable: boolean): void;
  /** Origins to which there are connections. */
  origins(): number;
  /** Drops all connections; their requests end with an error. */
  close(): void;
}

/**
 * For how long an unused connection stays open where the handler sends no `Keep-Alive` header. Many servers close theirs
 * after 5 s, and a request sent at that moment fails.
 */
const DEFAULT_KEEP_ALIVE_MS = 4_000;
const KEEP_ALIVE_MS = 30_000;
/**
 * A connection leads to where its name led, and was allowed to lead, when it was made. A handler that is always busy
 * would otherwise be sent there for ever, though its name has moved.
 */
const LIFE_MS = 5 * 60_000;
const MAX_ANSWER_HEADER_BYTES = 16 * 1_024;

interface Origin {
  readonly connect: Connect;
  readonly all: Set<Connection>;
  /** The one that was used last is used next, so that the others come to be closed. */
  readonly idle: Connection[];
  /** Connections that are free after a turn, see `freeAfterTurn`. */
  ending: number;
  readonly waiting: (readonly [Dispatcher.DispatchOptions, Exchange])[];
}

/** A connection whose request has ended well. */
interface Ended {
  readonly destination: Destination;
  readonly origin: Origin;
  readonly connection: Connection;
}

/**
 * Connections of HTTP/1.1 to each origin, made through the guard. They are pooled here and not by undici, whose pool
 * searches all of an origin's for each request, does not report which one carries it, and stays for ever once it had to
 * queue a request for an origin that cannot be reached.
 */
export function createConnections(options: ConnectionOptions): Connections {
  const {
    guard,
    allowHttp,
    timeoutMs,
    maxPerOrigin,
    keepAliveMs = KEEP_ALIVE_MS,
    lifeMs = LIFE_MS,
    ca,
  } = options;
  const clientOptions: Client.Options = {
    // Over HTTP/2 undici 8 bounds no headers and sends again by itself what a GOAWAY refused, after which others to the same
    // origin wait in vain; and what is read of a connection would be that of many attempts.
    allowH2: false,
    pipelining: 1,
    maxHeaderSize: MAX_ANSWER_HEADER_BYTES,
    keepAliveTimeout: Math.min(keepAliveMs, DEFAULT_KEEP_ALIVE_MS),
    keepAliveMaxTimeout: keepAliveMs,
    // One deadline over everything is set outside.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  const origins = new Map<string, Origin>();
  let endedInThisTurn: Ended[] = [];
  let endedBefore: Ended[] = [];
  let isTurnAwaited = false;

  // The guard must know the port, and a look-up does not get it: hence a connector for each origin.
  function connectorTo({ origin, port, literal }: Destination): Connect {
    const refusal = allowHttp || !origin.startsWith("http:") ? undefined : notEncrypted(origin);
    const connect = buildConnector({
      lookup: guard.lookupFor(port),
      timeout: timeoutMs,
      allowH2: false,
      // Said outright, so that NODE_TLS_REJECT_UNAUTHORIZED cannot turn it off.
      rejectUnauthorized: true,
      ...(ca === undefined ? {} : { ca }),
    });
    return (target, callback) => {
      // The look-up that guards a connection never runs for a literal address.
      const refused = refusal ?? (literal === undefined ? undefined : guard.check(literal, port));
      if (refused !== undefined) {
        setImmediate(callback, refused, null, undefined);
        return undefined;
      }
      const startedMs = performance.now();
      let resolvedMs: number | undefined;
      // undici gives the socket back although its types do not say so.
      const socket: unknown = connect(target, (...[error, connected]) => {
        const dnsMs = resolvedMs === undefined ? undefined : resolvedMs - startedMs;
        const connectMs = performance.now() - (resolvedMs ?? startedMs);
        callback(error, connected, { dnsMs, connectMs });
      });
      if (!(socket instanceof Socket)) return undefined;
      if (literal === undefined) socket.once("lookup", () => (resolvedMs = performance.now()));
      return socket;
    };
  }

  function originOf(destination: Destination): Origin {
    let origin = origins.get(destination.origin);
    if (origin === undefined) {
      origin = { connect: connectorTo(destination), all: new Set(), idle: [], ending: 0, waiting: [] };
      origins.set(destination.origin, origin);
    }
    return origin;
  }

  function open(destination: Destination, origin: Origin): Connection {
    const connection = new Connection({
      origin: destination.origin,
      connect: origin.connect,
      options: clientOptions,
      onClosed: (closed) => {
        const place = origin.idle.indexOf(closed);
        if (place >= 0) origin.idle.splice(place, 1);
        discard(origin, closed);
        evictUnused(destination, origin);
      },
    });
    origin.all.add(connection);
    return connection;
  }

  function discard({ all }: Origin, connection: Connection): void {
    connection.destroy();
    all.delete(connection);
  }

  function evictUnused({ origin: name }: Destination, origin: Origin): void {
    if (origin.all.size > 0 || origin.waiting.length > 0) return;
    if (origins.get(name) === origin) origins.delete(name);
  }

  /** One that is free or may be made. */
  function take(destination: Destination, origin: Origin): Connection | undefined {
    return takeIdle(origin) ?? (origin.all.size < maxPerOrigin ? open(destination, origin) : undefined);
  }

  function takeIdle(origin: Origin): Connection | undefined {
    for (let idle = origin.idle.pop(); idle !== undefined; idle = origin.idle.pop()) {
      if (idle.isOpen && !idle.isOlderThan(lifeMs)) return idle;
      discard(origin, idle);
    }
    return undefined;
  }

  function dispatchNext(destination: Destination, origin: Origin): void {
    const { waiting } = origin;
    while (waiting[0]?.[1].isEnded === true) waiting.shift();
    const connection = waiting.length === 0 ? undefined : take(destination, origin);
    if (connection !== undefined) connection.dispatch(...waiting.shift()!);
  }

  /**
   * A handler may close behind its answer without having said so. What comes right behind it is read in the next turn of the
   * event loop: an answer is read between two immediates, so only the second one comes after that. One immediate a turn
   * serves all connections.
   */
  function freeAfterTurn(ended: Ended): void {
    ended.origin.ending += 1;
    endedInThisTurn.push(ended);
    if (isTurnAwaited) return;
    isTurnAwaited = true;
    setImmediate(turnOver);
  }

  function turnOver(): void {
    const over = endedBefore;
    endedBefore = endedInThisTurn;
    endedInThisTurn = [];
    isTurnAwaited = endedBefore.length > 0;
    if (isTurnAwaited) setImmediate(turnOver);
    for (const { destination, origin, connection } of over) {
      origin.ending -= 1;
      // Otherwise it has closed meanwhile; whoever waits for it gets another.
      if (origin.all.has(connection)) {
        if (connection.isOpen && !connection.isOlderThan(lifeMs)) origin.idle.push(connection);
        else discard(origin, connection);
      }
      dispatchNext(destination, origin);
      evictUnused(destination, origin);
    }
  }

  return {
    send(destination, request, exchange) {
      const origin = originOf(destination);
      // One that is about to be free is there sooner than a new one.
      const isWorthWaiting = origin.waiting.length < origin.ending;
      const connection = isWorthWaiting ? takeIdle(origin) : take(destination, origin);
      if (connection === undefined) origin.waiting.push([request, exchange]);
      else connection.dispatch(request, exchange);
    },
    ended(destination, connection, isReusable) {
      const origin = origins.get(destination.origin);
      // One that still waited has none; and when all are dropped nothing is used again.
      if (connection === undefined || origin?.all.has(connection) !== true) return;
      connection.release();
      if (isReusable) return freeAfterTurn({ destination, origin, connection });
      discard(origin, connection);
      dispatchNext(destination, origin);
      evictUnused(destination, origin);
    },
    origins: () => origins.size,
    close() {
      const dropped = [...origins.values()];
      origins.clear();
      for (const { all, waiting } of dropped) {
        for (const connection of all) connection.destroy();
        for (const [, exchange] of waiting) exchange.abort();
      }
    },
  };
}

function notEncrypted(origin: string): EvregError {
  return new EvregError(
    "forbidden",
    `Deliveries to ${origin} are not allowed: it is http: and not https:. An operator can open it with delivery.allowHttp.`,
  );
}

/** Where a handler is, taken apart. */
interface Destination {
  readonly origin: string;
  /** With the query. */
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
  const { origin, pathname, search } = url;
  const found = { origin, path: pathname + search, port: portOf(url), literal: literalAddress(url) };
  destinations.set(handler, found);
  return found;
}

function portOf({ port, protocol }: URL): number {
  if (port !== "") return Number(port);
  return protocol === "http:" ? 80 : 443;
}
