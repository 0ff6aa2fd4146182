import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { callerKey, Shares } from "../runtime/shares.ts";
import { addressOf } from "./caller-address.ts";

const TURNS = Symbol("the connection's requests");

/** What node makes of a request. */
const REQUEST_BYTES = 2 * 1024;

interface ConnectionTurns {
  /** The answer to the request that was started last, also once it is out. */
  current: ServerResponse | undefined;
  readonly waiting: WaitingRequest[];
}

interface WaitingRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Gives back what it took while it waited. */
  readonly release: () => void;
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
 * Starts the requests of each connection one at a time. Node hands over all that arrived together, so a caller could start a thousand
 * of them, and read no answer.
 */
export class Turns {
  readonly #start: (request: IncomingMessage, response: ServerResponse) => void;
  readonly #waitingBytes: Shares;

  /** @param maxWaitingBytes what waiting requests take together; callers share it, and a connection ends beyond its caller's share */
  constructor(start: (request: IncomingMessage, response: ServerResponse) => void, maxWaitingBytes: number) {
    this.#start = start;
    this.#waitingBytes = new Shares(maxWaitingBytes);
  }

  /** Starts the request, or has it wait for its turn. */
  admit(request: IncomingMessage, response: ServerResponse): void {
    const socket: Connection = request.socket;
    const turns = (socket[TURNS] ??= { current: undefined, waiting: [] });
    // An answer that ends its connection is the last one (RFC 9112, 9.6).
    if (turns.current?.shouldKeepAlive === false) return;
    if (isBetweenRequests(socket)) {
      turns.current = response;
      this.#start(request, response);
      return;
    }
    if (socket.destroyed) return;
    // Whose token it is, if any, is known only once it has begun.
    const caller = callerKey({ address: addressOf(request.socket), token: undefined });
    const bytes = bytesOf(request);
    if (!this.#waitingBytes.tryTake(caller, bytes)) {
      socket.destroy();
      return;
    }
    turns.waiting.push({ request, response, release: () => this.#waitingBytes.release(caller, bytes) });
    if (turns.waiting.length === 1) this.#goOnAfter(turns.current!, socket, turns);
    // Not for the first alone: node reads on after each message that it has parsed.
    process.nextTick(() => turns.waiting.length > 0 && socket.pause());
  }

  #goOnAfter(current: ServerResponse, socket: Connection, turns: ConnectionTurns): void {
    const goOn = (): void => {
      const isOver = socket.destroyed || !current.shouldKeepAlive;
      const [next, ...others] = turns.waiting.splice(0, isOver ? Infinity : 1);
      for (const { release } of [next!, ...others]) release();
      if (isOver) return;
      turns.current = next!.response;
      if (turns.waiting.length > 0) this.#goOnAfter(turns.current, socket, turns);
      else socket.resume();
      this.#start(next!.request, turns.current);
    };
    // Others have their turn first, however many requests arrived together here.
    current.once("close", () => setImmediate(goOn));
  }
}

function bytesOf({ rawHeaders, url = "" }: IncomingMessage): number {
  let bytes = REQUEST_BYTES + url.length;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}
