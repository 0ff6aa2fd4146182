import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../runtime/clock.ts";
import { addressOf } from "./caller-address.ts";
import { currentAnswer, isBetweenRequests } from "./turns.ts";

const SEEN = Symbol("newest answer when an idle one was last looked for");
const RESERVED = Symbol("in the reserve");

/** How long a server that ends waits for the first byte on a connection. */
const FIRST_BYTE_MS = 250;

/** A connection as it was accepted; of an encrypted one, what lies below. */
type Accepted = Socket & { [SEEN]?: ServerResponse; [RESERVED]?: true; encrypted?: Socket };

export interface ConnectionLimits {
  /**
   * The longest time without a byte either way on a connection whose caller has to do something, such as to read its
   * answer.
   */
  readonly idleTimeoutMs: number;
  /** How often requests under way are looked for, whose idle timeout starts this much late at most. */
  readonly checkEveryMs: number;
  /**
   * One that is between two requests is closed for each that comes once there are more, and none is taken where there is no
   * such one.
   */
  readonly maxConnections: number;
  /** How many one address may have, unless it is this machine's own. */
  readonly maxOfAddress: number;
  /**
   * Beside those, when no place can be made: so many for callers on this machine, and as many from elsewhere for `/health`. In
   * the first, a new one takes the place of the one that came first, so that nobody on this machine can hoard them.
   */
  readonly reserved: number;
}

/**
 * The open connections of a server with the last answer of each, so that closing can end each after its answer. The answer
 * is stored on the connection itself: listeners, set entries or look-ups for each request would be noticeable.
 *
 * When all places are taken, an idle connection of the address with most connections is closed: about the longest idle
 * one, without recording the time of each request. A connection that was used since the last look is passed over once
 * (the clock algorithm of page caches).
 */
export class Connections {
  readonly #server: Server;
  readonly #limits: ConnectionLimits;
  readonly #open = new Set<Socket>();
  /** Connections by address, each in the order in which an idle one is looked for. */
  readonly #places = new Map<string | undefined, Set<Accepted>>();
  readonly #ownReserve = new Set<Accepted>();
  readonly #healthReserve = new Set<Accepted>();
  /** Connections in their TLS handshake, by address and port of the peer. */
  readonly #handshaking = new Map<string, Accepted>();
  #placed = 0;
  #idleCheck: NodeJS.Timeout | undefined;
  #closing = false;

  /** @param refused called for each connection that is refused */
  constructor(server: Server, limits: ConnectionLimits, refused: () => void) {
    this.#server = server;
    this.#limits = limits;
    const closeIdle = server.closeIdleConnections.bind(server);
    server.closeIdleConnections = () => this.#closeIdleOnceOut(closeIdle);
    const encrypts = "setSecureContext" in server;
    server.on("connection", (socket: Accepted) => {
      if (!this.#place(socket)) {
        socket.destroy();
        refused();
        return;
      }
      this.#opened(socket);
      if (encrypts) this.#handshake(socket);
      else socket.setTimeout(limits.idleTimeoutMs);
    });
    // Answers belong to the encrypted side. The socket below it counts until then.
    server.on("secureConnection", (socket: Socket) => {
      this.#opened(socket);
      socket.setTimeout(limits.idleTimeoutMs);
      const from = originOf(socket);
      const below = this.#handshaking.get(from);
      if (below !== undefined) below.encrypted = socket;
      this.#handshaking.delete(from);
    });
  }

  /**
   * Starts the idle timeout of connections with a request under way. With one that node starts for every request, each read
   * and write would set its timer anew: 4 % of what a publish costs here. Between requests, node's timeout for keep-alive
   * runs. Who has sent a whole request waits for its answer however long that takes.
   */
  #limitIdle(): void {
    for (const socket of this.#open) {
      const answer = currentAnswer(socket);
      if (answer === undefined || answer.writableFinished) continue;
      const isOwed = answer.req.complete && !answer.headersSent;
      const timeoutMs = isOwed ? 0 : this.#limits.idleTimeoutMs;
      if ((socket.timeout ?? 0) !== timeoutMs) socket.setTimeout(timeoutMs);
    }
  }

  #handshake(socket: Accepted): void {
    const from = originOf(socket);
    this.#handshaking.set(from, socket);
    socket.on("close", () => {
      if (this.#handshaking.get(from) === socket) this.#handshaking.delete(from);
    });
  }

  #opened(socket: Socket): void {
    this.#open.add(socket);
    this.#idleCheck ??= setInterval(() => this.#limitIdle(), this.#limits.checkEveryMs).unref();
    socket.on("close", () => {
      this.#open.delete(socket);
      if (this.#open.size > 0) return;
      clearInterval(this.#idleCheck);
      this.#idleCheck = undefined;
    });
  }

  /** Gives it a place, or one that is made for it; answers whether there was one. */
  #place(socket: Accepted): boolean {
    const { maxConnections, maxOfAddress, reserved } = this.#limits;
    const address = addressOf(socket);
    const own = this.#places.get(address);
    const isOver = address !== undefined && own !== undefined && own.size >= maxOfAddress;
    if (isOver ? this.#closeIdle(own) : this.#placed < maxConnections || this.#closeIdleOfAny()) {
      this.#enter(socket, this.#places.get(address) ?? new Set());
      return true;
    }
    const isOwn = address === undefined;
    const reserve = isOwn ? this.#ownReserve : this.#healthReserve;
    const isFull = reserve.size >= reserved;
    if (isFull && !this.#closeIdle(reserve) && !(isOwn && this.#closeFirst(reserve))) return false;
    socket[RESERVED] = true;
    this.#enter(socket, reserve);
    return true;
  }

  #enter(socket: Accepted, group: Set<Accepted>): void {
    const address = addressOf(socket);
    group.add(socket);
    if (socket[RESERVED] !== true) {
      this.#places.set(address, group);
      this.#placed += 1;
    }
    socket.on("close", () => this.#leave(socket, group, address));
  }

  #leave(socket: Accepted, group: Set<Accepted>, address: string | undefined): void {
    if (!group.delete(socket) || socket[RESERVED] === true) return;
    this.#placed -= 1;
    if (group.size === 0) this.#places.delete(address);
  }

  #closeIdleOfAny(): boolean {
    const bySize = [...this.#places.values()].toSorted((one, other) => other.size - one.size);
    return bySize.some((group) => this.#closeIdle(group));
  }

  /** Closes one of them that is between two requests; answers whether there was any. */
  #closeIdle(group: Set<Accepted>): boolean {
    return this.#close(findIdle(group), group);
  }

  #closeFirst(group: Set<Accepted>): boolean {
    const [first] = group;
    return this.#close(first, group);
  }

  #close(socket: Accepted | undefined, group: Set<Accepted>): boolean {
    if (socket === undefined) return false;
    // Its place is free at once; its end comes later.
    this.#leave(socket, group, addressOf(socket));
    socket.destroy();
    return true;
  }

  /** Whether this request may not be answered on its connection: it is in the reserve, for another purpose. */
  exceedsReserve({ socket, url }: IncomingMessage): boolean {
    return (socket as Accepted)[RESERVED] === true && addressOf(socket) !== undefined && url !== "/health";
  }

  /**
   * Closes idle connections once there is no answer that is ended and not out yet. Node takes the connection of such a one for idle,
   * and would cut it.
   */
  #closeIdleOnceOut(closeIdle: () => void): void {
    const ended = Array.from(this.#open, currentAnswer).find(
      (answer) => answer?.writableEnded === true && !answer.writableFinished,
    );
    if (ended) ended.once("close", () => this.#closeIdleOnceOut(closeIdle));
    else closeIdle();
  }

  /** Whether each connection ends with the answer it is waiting for. */
  get isClosing(): boolean {
    return this.#closing;
  }

  /**
   * Has each connection end with the answer it is waiting for. Those between two requests the server closes itself, but not those
   * on which nothing was sent so far: the first request of one that was just accepted may be on its way.
   */
  endAfterAnswers(clock: Clock): void {
    this.#closing = true;
    const silent = Array.from(this.#open).filter(({ bytesRead }) => bytesRead === 0);
    const endSilent = (): void => {
      for (const socket of silent) if (socket.bytesRead === 0) socket.destroy();
    };
    if (silent.length > 0) clock.setTimer(endSilent, FIRST_BYTE_MS);
    for (const socket of this.#open) {
      const answer = currentAnswer(socket);
      if (answer === undefined || answer.writableFinished) continue;
      // The client learns of it, and node ends the connection after the answer.
      answer.shouldKeepAlive = false;
      if (answer.headersSent) answer.once("close", () => this.#server.closeIdleConnections());
    }
  }

  /** Cuts every connection, also those that node has let go of, such as that of a `CONNECT`. */
  destroyAll(): void {
    for (const socket of this.#open) socket.destroy();
  }
}

/** The first idle one that was not used since the last look, else the first idle one. */
function findIdle(group: Set<Accepted>): Accepted | undefined {
  let used: Accepted | undefined;
  let remaining = group.size;
  for (const socket of group) {
    if (remaining === 0) break;
    remaining -= 1;
    const answering = socket.encrypted ?? socket;
    if (isEnding(answering) || !isBetweenRequests(answering)) continue;
    const newest = currentAnswer(answering);
    if (socket[SEEN] === newest) return socket;
    if (newest !== undefined) socket[SEEN] = newest;
    group.delete(socket);
    group.add(socket);
    used ??= socket;
  }
  return used;
}

/** How long a peer may take to read the last answer before its connection is destroyed. */
const LINGER_MS = 2_000;

const ending = new WeakSet<Duplex>();

/**
 * Sends the last answer of a connection and ends it, once the peer has closed its side or after a short wait. Until then,
 * what the peer sends is read and dropped: a close with unread bytes would reset the connection, and the peer could lose
 * the answer (RFC 9112, 9.6).
 */
export function lingeringClose(socket: Duplex, text: string, clock: Clock): void {
  // Node takes its own listener off a `CONNECT` socket, and a peer that resets would then end the process.
  socket.on("error", ignore);
  if (socket.destroyed || ending.has(socket)) return;
  ending.add(socket);
  socket.once(
    "close",
    clock.setTimer(() => socket.destroy(), LINGER_MS),
  );
  socket.end(text);
  socket.resume();
}

/** Whether its last answer was sent. Nothing that arrives after it may be acted on: that answer was a failure. */
export function isEnding(socket: Duplex): boolean {
  return ending.has(socket);
}

function ignore(): void {}

function originOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
