import { Socket } from "node:net";
import { buildConnector, Pool, type Dispatcher } from "undici";
import { EvregError } from "../domain/error.ts";
import type { ConnectionTimes } from "../store/finishes.ts";
import type { AddressGuard } from "./address-guard.ts";
import type { Destination } from "./destination.ts";

export interface ConnectionOptions {
  readonly guard: AddressGuard;
  /** Whether a handler may be one that is not encrypted to; it may have been registered when that was allowed. */
  readonly allowHttp: boolean;
  /** How long a connection may take to be made. */
  readonly timeoutMs: number;
  /** Most connections to one origin; while a pool is replaced, those that end their last request come on top. */
  readonly maxPerOrigin: number;
  /** How long an unused connection stays open at most. */
  readonly keepAliveMs?: number;
  /** How long a connection is used again at most, however busy it is. */
  readonly lifeMs?: number;
  /** PEM of a certificate authority to trust instead of the system's. */
  readonly ca?: string;
}

export interface Connections {
  /** The pool for an origin, which stays until every user has called `release`. */
  acquire(destination: Destination): { readonly pool: Dispatcher; readonly release: () => void };
  /** One an origin, and those whose time is over and that still have requests. */
  pools(): number;
  /** For a request that is about to be written: how its connection was made, if that is new. */
  takeNew(this: void): NewConnection | undefined;
  /** Drops all connections; what is under way on them ends with an error. */
  close(): Promise<void>;
}

/** What it took to make a connection. */
export type NewConnection = Omit<ConnectionTimes, "firstByteMs">;

/**
 * How long a connection is kept unused where the handler's `Keep-Alive` header says nothing. Many servers close theirs
 * after 5 s, and a request sent into that moment is lost.
 */
const UNTOLD_KEEP_ALIVE_MS = 4_000;
const KEEP_ALIVE_MS = 30_000;
/**
 * A connection leads to where its name led, and was allowed to lead, when it was made. A handler that is always busy
 * would otherwise be sent there for ever, though its name has moved.
 */
const LIFE_MS = 5 * 60_000;
const MAX_ANSWER_HEADER_BYTES = 16 * 1_024;

interface Held {
  readonly pool: Pool;
  /** By `performance.now()`, as is the next. */
  readonly madeAtMs: number;
  users: number;
  /** When the last user went. */
  unusedSinceMs: number;
}

/**
 * A pool of HTTP/1.1 connections an origin, each connected through the guard. Pools are counted here and not left to
 * undici's Agent, which keeps a pool for ever once it had to queue a request for an origin that cannot be reached.
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
  const connecting = new Set<Socket>();
  const held = new Map<string, Held>();
  /** Pools that get no more requests, until those they have are done. */
  const retired = new Set<Held>();
  let sweeping: NodeJS.Timeout | undefined;
  /** There only while undici is told of the connection, when it writes the request for which it asked for one. */
  let fresh: NewConnection | undefined;

  // The guard must know the port, and a look-up is not told it: hence a connector an origin.
  function connectorTo({ origin, port, literal }: Destination): buildConnector.connector {
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
        setImmediate(callback, refused, null);
        return;
      }
      // undici gives the socket back although its types do not say so. It forgets sockets that are not connected yet
      // when it is destroyed, and they would hold the process until their time is up.
      const beganMs = performance.now();
      let resolvedMs: number | undefined;
      const socket: unknown = connect(target, (...outcome) => {
        if (socket instanceof Socket) connecting.delete(socket);
        if (outcome[0] === null) {
          const dnsMs = resolvedMs === undefined ? undefined : resolvedMs - beganMs;
          fresh = { dnsMs, connectMs: performance.now() - (resolvedMs ?? beganMs) };
        }
        callback(...outcome);
        fresh = undefined;
      });
      if (!(socket instanceof Socket)) return;
      connecting.add(socket);
      if (literal === undefined) socket.once("lookup", () => (resolvedMs = performance.now()));
    };
  }

  function createPool(destination: Destination): Pool {
    return new Pool(destination.origin, {
      connections: maxPerOrigin,
      connect: connectorTo(destination),
      allowH2: false,
      pipelining: 1,
      maxHeaderSize: MAX_ANSWER_HEADER_BYTES,
      keepAliveTimeout: Math.min(keepAliveMs, UNTOLD_KEEP_ALIVE_MS),
      keepAliveMaxTimeout: keepAliveMs,
      // One deadline over everything is kept outside.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  function sweep(): void {
    const nowMs = performance.now();
    for (const [origin, entry] of held) {
      const isUnused = entry.users === 0 && nowMs - entry.unusedSinceMs >= keepAliveMs;
      if (!isUnused && nowMs - entry.madeAtMs < lifeMs) continue;
      held.delete(origin);
      retired.add(entry);
    }
    for (const entry of retired) {
      if (entry.users > 0) continue;
      retired.delete(entry);
      void entry.pool.destroy();
    }
    if (held.size + retired.size > 0) return;
    clearInterval(sweeping);
    sweeping = undefined;
  }

  return {
    acquire(destination) {
      let entry = held.get(destination.origin);
      if (entry === undefined) {
        entry = { pool: createPool(destination), madeAtMs: performance.now(), users: 0, unusedSinceMs: 0 };
        held.set(destination.origin, entry);
        sweeping ??= setInterval(sweep, keepAliveMs / 2).unref();
      }
      const { pool } = entry;
      entry.users += 1;
      return {
        pool,
        release: () => {
          entry.users -= 1;
          if (entry.users === 0) entry.unusedSinceMs = performance.now();
        },
      };
    },
    pools: () => held.size + retired.size,
    takeNew() {
      const taken = fresh;
      fresh = undefined;
      return taken;
    },
    async close() {
      clearInterval(sweeping);
      const pools = [...held.values(), ...retired].map((entry) => entry.pool);
      held.clear();
      retired.clear();
      const destroyed = Promise.all(pools.map((pool) => pool.destroy()));
      for (const socket of connecting) socket.destroy();
      connecting.clear();
      await destroyed;
    },
  };
}

function notEncrypted(origin: string): EvregError {
  return new EvregError(
    "forbidden",
    `Deliveries to ${origin} are not allowed: it is http: and not https:. An operator can open it with delivery.allowHttp.`,
  );
}
