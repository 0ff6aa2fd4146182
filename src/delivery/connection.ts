import type { Socket } from "node:net";
import { type buildConnector, Client, type Dispatcher } from "undici";
import type { ConnectionTimes } from "../store/finishes.ts";
import type { Exchange } from "./exchange.ts";

/** What it took to make a connection. */
export type NewConnection = Omit<ConnectionTimes, "firstByteMs">;

/** Makes a connection, and says what that took. */
export type Connect = (
  target: buildConnector.Options,
  callback: (error: Error | null, socket: Socket | null, made: NewConnection | undefined) => void,
) => Socket | undefined;

export interface ConnectionParts {
  readonly origin: string;
  readonly connect: Connect;
  readonly options: Client.Options;
  /** Told when it is closed while nothing is under way on it. */
  readonly onClosed: (connection: Connection) => void;
}

/**
 * Most bytes that are read from a connection for one request, wherever in the answer they are: a parser bounds headers and
 * hands on the body, and reads on without end through a reason phrase, the extensions of chunks or trailers. It is more
 * than headers and body may have, with what chunks of a few bytes add.
 */
const MAX_EXCHANGE_BYTES = 64 * 1_024;

/** One connection, for one request after the other. */
export class Connection {
  readonly #parts: ConnectionParts;
  readonly #client: Client;
  #socket: Socket | undefined;
  #exchange: Exchange | undefined;
  /** There only while the request is written that it was made for. */
  #made: NewConnection | undefined;
  /** By `performance.now()`. */
  #madeAtMs = Infinity;
  #bytesBefore = 0;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.#client = new Client(parts.origin, {
      ...parts.options,
      connect: (target, callback) => this.#connect(target, callback),
    });
    this.#client.on("disconnect", () => {
      if (this.#exchange === undefined) parts.onClosed(this);
    });
  }

  isOlderThan(lifeMs: number): boolean {
    return performance.now() - this.#madeAtMs >= lifeMs;
  }

  /** As far as is known by now. */
  get isOpen(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed && !this.#socket.readableEnded;
  }

  dispatch(request: Dispatcher.DispatchOptions, exchange: Exchange): void {
    this.#exchange = exchange;
    exchange.carriedBy(this);
    this.#client.dispatch(request, exchange);
  }

  /** The request is about to be written. Answers how the connection was made, if it was made for it. */
  began(): NewConnection | undefined {
    this.#bytesBefore = this.#socket?.bytesRead ?? 0;
    return this.#made;
  }

  /** Its request has ended. */
  rest(): void {
    this.#exchange = undefined;
  }

  /** Ends it with what is under way on it, also before it is made. */
  destroy(): void {
    this.#client.destroy(() => {});
    // undici forgets a socket that is not connected yet, and that would hold the process until its time is up.
    this.#socket?.destroy();
  }

  #connect(target: buildConnector.Options, callback: buildConnector.Callback): void {
    this.#socket = this.#parts.connect(target, (error, socket, made) => {
      if (error !== null || socket === null) return callback(error ?? new Error("no socket"), null);
      this.#socket = socket;
      this.#madeAtMs = performance.now();
      this.#made = made;
      callback(null, socket);
      this.#made = undefined;
      // After undici's own, which has parsed by then what came: an answer that is there counts.
      socket.on("readable", () => {
        if (socket.bytesRead - this.#bytesBefore > MAX_EXCHANGE_BYTES)
          this.#exchange?.abort("protocol_error");
      });
    });
  }
}
