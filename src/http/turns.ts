import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

const TURNS = Symbol("the connection's requests");

interface ConnectionTurns {
  /** The answer to the request that was started last, also once it is out. */
  current: ServerResponse;
  /** The request that came while that one was under way. */
  next: { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined;
}

/** Requests and answers are kept on the connection itself: a look-up for each request would be noticeable. */
type Connection = Duplex & { [TURNS]?: ConnectionTurns };

/** The answer to the request of this connection that was started last, also once it is out. */
export function currentAnswer(socket: Connection): ServerResponse | undefined {
  return socket[TURNS]?.current;
}

/** The answer to the request of this connection that arrived last, also once it is out. */
export function newestAnswer(socket: Connection): ServerResponse | undefined {
  return socket[TURNS]?.next?.response ?? socket[TURNS]?.current;
}

/** Whether all requests of this connection are answered. */
export function isBetweenRequests(socket: Connection): boolean {
  return newestAnswer(socket)?.writableFinished !== false;
}

type Start = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Starts the requests of each connection one at a time. Node hands over all that arrived together, so a caller could start a
 * thousand of them, and read no answer. One request may wait: over TLS the next may come before node has reported that the
 * answer is out. Nobody sends more than that ahead, so that ends the connection.
 */
export function inTurns(start: Start): Start {
  return (request, response) => {
    const socket: Connection = request.socket;
    const turns = socket[TURNS];
    if (turns === undefined) {
      socket[TURNS] = { current: response, next: undefined };
      return start(request, response);
    }
    // An answer that ends its connection is the last one (RFC 9112, 9.6).
    if (!turns.current.shouldKeepAlive) return;
    if (isBetweenRequests(socket)) {
      turns.current = response;
      return start(request, response);
    }
    if (turns.next !== undefined) return void socket.destroy();
    turns.next = { request, response };
    // Not at once: node reads on after the message that it is parsing.
    process.nextTick(() => turns.next !== undefined && socket.pause());
    // Others have their turn first.
    turns.current.once("close", () => setImmediate(startNext, socket, turns, start));
  };
}

function startNext(socket: Connection, turns: ConnectionTurns, start: Start): void {
  const { request, response } = turns.next!;
  turns.next = undefined;
  if (socket.destroyed || !turns.current.shouldKeepAlive) return;
  turns.current = response;
  socket.resume();
  start(request, response);
}
