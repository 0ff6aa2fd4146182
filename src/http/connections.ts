import ipaddr from "ipaddr.js";
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../runtime/clock.ts";

/** How long a server that ends waits for the first byte on a connection. */
const FIRST_BYTE_MS = 250;

export interface ConnectionLimits {
  /** How many may be open; more are refused. */
  readonly maxConnections: number;
  /** How many one address may have, unless it is this machine's own. */
  readonly maxOfAddress: number;
  /** Beside `maxConnections` for callers on this machine, so that its commands reach a server that others have filled. */
  readonly reserved: number;
}

/**
 * The open connections of a server with the last answer of each, so that closing can end each after its answer. Requests and answers
 * are kept on the connection itself: listeners, set entries or look-ups for each request would be noticeable.
 */
export class Connections {
  readonly #server: Server;
  readonly #limits: ConnectionLimits;
  readonly #clock: Clock;
  /** All of them; of an encrypted one, what lies below. */
  readonly #accepted = new Set<Socket>();
  readonly #ofAddress = new Map<string | undefined, number>();
  /** Those on which requests come: of an encrypted one, the upper side once its handshake is done. */
  readonly #open = new Set<Socket>();
  /** Whether each connection ends with the answer it is waiting for. */
  isClosing = false;
  #closed: Promise<void> | undefined;

  /** @param refused called for each connection that is refused */
  constructor(server: Server, limits: ConnectionLimits, clock: Clock, refused: () => void) {
    this.#server = server;
    this.#limits = limits;
    this.#clock = clock;
    // By it node closes connections when the server ends, also one whose answer is ended and not out yet. See `#endAfterAnswers`.
    server.closeIdleConnections = () => undefined;
    const encrypts = "setSecureContext" in server;
    server.on("connection", (socket: Socket) => {
      if (!this.#accept(socket)) {
        socket.destroy();
        refused();
      } else if (!encrypts) this.#opened(socket);
    });
    server.on("secureConnection", (socket: Socket) => this.#opened(socket));
  }

  /** Answers whether there is a place for it. */
  #accept(socket: Socket): boolean {
    const { maxConnections, maxOfAddress, reserved } = this.#limits;
    const address = addressOf(socket);
    const isOwn = address === undefined;
    const held = this.#ofAddress.get(address) ?? 0;
    if (this.#accepted.size >= maxConnections + (isOwn ? reserved : 0)) return false;
    if (!isOwn && held >= maxOfAddress) return false;
    this.#accepted.add(socket);
    this.#ofAddress.set(address, held + 1);
    socket.on("close", () => {
      this.#accepted.delete(socket);
      const left = this.#ofAddress.get(address)! - 1;
      if (left > 0) this.#ofAddress.set(address, left);
      else this.#ofAddress.delete(address);
    });
    return true;
  }

  #opened(socket: Socket): void {
    this.#open.add(socket);
    socket.on("close", () => this.#open.delete(socket));
  }

  /** See `HttpListener.close`. */
  close(deadlineMs: number): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#endAfterAnswers();
    });
    const destroyAll = (): void => {
      for (const socket of this.#accepted) socket.destroy();
    };
    return this.#closed.then(this.#clock.setTimer(destroyAll, deadlineMs));
  }

  /**
   * Ends each connection with the answer it is waiting for, and those between two requests at once, but not those on which nothing
   * was sent so far: the first request of one that was just accepted may be on its way.
   */
  #endAfterAnswers(): void {
    this.isClosing = true;
    // Of an encrypted one the bytes of its handshake count below, and requests count above.
    const silent = [...this.#accepted, ...this.#open].filter(({ bytesRead }) => bytesRead === 0);
    const endSilent = (): void => {
      for (const socket of silent) if (socket.bytesRead === 0) socket.destroy();
    };
    if (silent.length > 0) this.#clock.setTimer(endSilent, FIRST_BYTE_MS);
    for (const socket of this.#open) {
      const answer = currentAnswer(socket);
      if (answer === undefined || isBetweenRequests(socket)) {
        if (socket.bytesRead > 0) socket.destroy();
        continue;
      }
      // The client learns of it, and node ends the connection after the answer.
      answer.shouldKeepAlive = false;
      if (answer.headersSent) answer.once("close", () => socket.destroySoon());
    }
  }
}

/** How long a peer may take to read the last answer before its connection is destroyed. */
const LINGER_MS = 2_000;

/**
 * Sends the last answer of a connection and ends it, once the peer has closed its side or after a short wait. Until then,
 * what the peer sends is read and dropped: a close with unread bytes would reset the connection, and the peer could lose
 * the answer (RFC 9112, 9.6).
 */
function lingeringClose(socket: Duplex, text: string, clock: Clock): void {
  if (socket.destroyed || isEnding(socket)) return;
  socket.once(
    "close",
    clock.setTimer(() => socket.destroy(), LINGER_MS),
  );
  socket.end(text);
  socket.resume();
}

/** Whether its last answer was sent. Nothing that arrives after it may be acted on: that answer was a failure. */
export function isEnding(socket: Duplex): boolean {
  return socket.writableEnded;
}

/**
 * The owner of a connection: an IPv4 address, or the /64 network that an IPv6 one is of, as a whole one is given to each
 * customer. `undefined` for this machine itself, which may be a proxy in front of everybody.
 */
export function addressOf({ remoteAddress }: Socket): string | undefined {
  // The client has disconnected already.
  if (remoteAddress === undefined) return "";
  if (remoteAddress === "127.0.0.1" || remoteAddress === "::1") return undefined;
  const address = ipaddr.process(remoteAddress);
  if (!(address instanceof ipaddr.IPv6)) {
    const text = address.toString();
    return text === "127.0.0.1" ? undefined : text;
  }
  return address.parts.slice(0, 4).join(":");
}

const TURNS = Symbol("the connection's requests");

/** So many requests may wait behind the one under way: clients that send ahead at all send fewer. */
const MAX_WAITING = 16;

interface ConnectionTurns {
  /** The answer to the request that was started last, also once it is out. */
  current: ServerResponse;
  /** Whether somebody wants to know that the client has left. */
  noticesEnd: boolean;
  readonly waiting: { readonly request: IncomingMessage; readonly response: ServerResponse }[];
}

type Connection = Duplex & { [TURNS]?: ConnectionTurns };

/** The answer to the request of this connection that was started last, also once it is out. */
function currentAnswer(socket: Connection): ServerResponse | undefined {
  return socket[TURNS]?.current;
}

/** The answer to the request of this connection that arrived last, also once it is out. */
export function newestAnswer(socket: Connection): ServerResponse | undefined {
  return socket[TURNS]?.waiting.at(-1)?.response ?? socket[TURNS]?.current;
}

/** Whether all requests of this connection are answered. */
function isBetweenRequests(socket: Connection): boolean {
  return newestAnswer(socket)?.writableFinished !== false;
}

/** Reads on while one whole request waits behind the one under way: who has left is noticed by reading alone. */
export function noticeEnd(socket: Connection): void {
  const turns = socket[TURNS];
  if (turns === undefined) return;
  turns.noticesEnd = true;
  if (mayRead(turns)) socket.resume();
}

/** Nobody reads the bodies of those that wait: in many small chunks they would take fifty times their length in memory. */
function mayRead({ noticesEnd, waiting }: ConnectionTurns): boolean {
  const [first] = waiting;
  return first === undefined || (noticesEnd && waiting.length === 1 && first.request.complete);
}

type Start = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Starts the requests of each connection one at a time. Node hands over all that arrived together, so a caller could start a
 * thousand of them, and read no answer. More than `MAX_WAITING` sent ahead end the connection.
 */
export function inTurns(start: Start): Start {
  return (request, response) => {
    const socket: Connection = request.socket;
    const turns = socket[TURNS];
    if (turns === undefined) {
      socket[TURNS] = { current: response, noticesEnd: false, waiting: [] };
      return start(request, response);
    }
    // An answer that ends its connection is the last one (RFC 9112, 9.6).
    if (!turns.current.shouldKeepAlive) return;
    if (isBetweenRequests(socket)) {
      turns.current = response;
      turns.noticesEnd = false;
      return start(request, response);
    }
    if (turns.waiting.length === MAX_WAITING) return void socket.destroy();
    turns.waiting.push({ request, response });
    if (turns.waiting.length === 1) startNextAfter(turns.current, socket, turns, start);
    // Not at once: node reads on after the message that it is parsing.
    process.nextTick(() => mayRead(turns) || socket.pause());
  };
}

function startNextAfter(
  current: ServerResponse,
  socket: Connection,
  turns: ConnectionTurns,
  start: Start,
): void {
  const startNext = (): void => {
    const { request, response } = turns.waiting.shift()!;
    if (socket.destroyed || !current.shouldKeepAlive) return;
    turns.current = response;
    turns.noticesEnd = false;
    if (turns.waiting.length > 0) startNextAfter(response, socket, turns, start);
    else socket.resume();
    start(request, response);
  };
  // Others have their turn first, however many requests arrived together here.
  current.once("close", () => setImmediate(startNext));
}

type Failure = readonly [status: number, message: string];

const FAILURES: Readonly<Record<string, Failure>> = {
  HPE_HEADER_OVERFLOW: [
    431,
    "The address and the headers of the request are too large; together they may have 16 KiB.",
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "The request did not arrive in time."],
};
const NOT_HTTP: Failure = [400, "This is not a valid HTTP/1.1 request."];
const NO_ADDRESS: Failure = [400, "The request's address or its `Host` header is not valid."];

/**
 * What node's parser met on a connection: not HTTP, too large a head, too slow a sender. No request came of it.
 * @param newest the answer to the connection's last request
 */
export function answerParserError(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  newest: ServerResponse | undefined,
  clock: Clock,
): void {
  // Every further piece of a broken request is an error again.
  if (isEnding(socket)) return;
  const failure = FAILURES[error.code ?? ""] ?? NOT_HTTP;
  if (error.code === "ECONNRESET" || !socket.writable) socket.destroy(error);
  else if (newest === undefined || (newest.writableFinished && newest.req.complete))
    lingeringClose(socket, failureText(failure), clock);
  // The requests before this one were whole: their answers still go out, then the connection ends.
  else if (newest.req.complete) newest.shouldKeepAlive = false;
  // Nobody sends several requests at once of which the last is broken.
  else if (newest.socket === null) socket.destroy();
  // A failure may be written only where nothing of an answer is.
  else lingeringClose(socket, newest.headersSent ? "" : failureText(failure), clock);
}

/** Answers a request whose address the app cannot read. */
export function answerNoAddress(socket: Duplex, clock: Clock): void {
  lingeringClose(socket, failureText(NO_ADDRESS), clock);
}

function failureText([status, message]: Failure): string {
  const body = JSON.stringify({ error: message, details: {}, code: status });
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\nx-content-type-options: nosniff\r\ncache-control: no-store\r\n` +
    `connection: close\r\n\r\n${body}`
  );
}
