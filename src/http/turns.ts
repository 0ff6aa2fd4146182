import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

const TURNS = Symbol("the connection's requests");

/** So many requests may wait behind the one under way: clients that send ahead at all send fewer. */
const MAX_WAITING = 16;

interface ConnectionTurns {
  /** The answer to the request that was started last, also once it is out. */
  current: ServerResponse;
  /** How many may wait while bytes are read on. */
  readAhead: number;
  readonly waiting: { readonly request: IncomingMessage; readonly response: ServerResponse }[];
}

/** Requests and answers are kept on the connection itself: a look-up for each request would be noticeable. */
type Connection = Duplex & { [TURNS]?: ConnectionTurns };

/** The answer to the request of this connection that was started last, also once it is out. */
export function currentAnswer(socket: Connection): ServerResponse | undefined {
  return socket[TURNS]?.current;
}

/** The answer to the request of this connection that arrived last, also once it is out. */
export function newestAnswer(socket: Connection): ServerResponse | undefined {
  return socket[TURNS]?.waiting.at(-1)?.response ?? socket[TURNS]?.current;
}

/** Whether all requests of this connection are answered. */
export function isBetweenRequests(socket: Connection): boolean {
  return newestAnswer(socket)?.writableFinished !== false;
}

/**
 * Reads on while one request waits behind the one under way: who has left is noticed by reading alone. With more of them it is not
 * read on, as each may have a body in memory.
 */
export function noticeEnd(socket: Connection): void {
  const turns = socket[TURNS];
  if (turns === undefined) return;
  turns.readAhead = 1;
  if (turns.waiting.length === 1) socket.resume();
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
      socket[TURNS] = { current: response, readAhead: 0, waiting: [] };
      return start(request, response);
    }
    // An answer that ends its connection is the last one (RFC 9112, 9.6).
    if (!turns.current.shouldKeepAlive) return;
    if (isBetweenRequests(socket)) {
      turns.current = response;
      return start(request, response);
    }
    if (turns.waiting.length === MAX_WAITING) return void socket.destroy();
    turns.waiting.push({ request, response });
    if (turns.waiting.length === 1) startNextAfter(turns.current, socket, turns, start);
    // Not at once: node reads on after the message that it is parsing.
    process.nextTick(() => turns.waiting.length > turns.readAhead && socket.pause());
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
    turns.readAhead = 0;
    if (turns.waiting.length > 0) startNextAfter(response, socket, turns, start);
    else socket.resume();
    start(request, response);
  };
  // Others have their turn first, however many requests arrived together here.
  current.once("close", () => setImmediate(startNext));
}
