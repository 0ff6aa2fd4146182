import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

const NEWEST = Symbol("newest answer");

/** A connection with the newest answer that was begun on it. */
type Answering = Duplex & { [NEWEST]?: ServerResponse };

/**
 * The open connections of a server with the newest answer of each, so that closing can tell every caller. It is kept on
 * the connection itself, as listeners, set entries or look-ups for each request would be felt.
 */
export class Connections {
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  #closing = false;

  constructor(server: Server) {
    this.#server = server;
    const opened = (socket: Socket): void => {
      this.#open.add(socket);
      socket.on("close", () => this.#open.delete(socket));
    };
    server.on("connection", opened);
    // Answers are those of the encrypted side; the one below it is kept for those that never get that far.
    server.on("secureConnection", opened);
  }

  /** Answers with the answer to the connection's request before this one, also once it is out. */
  began(request: IncomingMessage, response: ServerResponse): ServerResponse | undefined {
    const socket: Answering = request.socket;
    const previous = socket[NEWEST];
    socket[NEWEST] = response;
    if (this.#closing) response.shouldKeepAlive = false;
    return previous;
  }

  /** The answer to the last request of a connection, also once it is out. */
  newestOf(socket: Answering): ServerResponse | undefined {
    return socket[NEWEST];
  }

  /**
   * Has each connection end with the answer it is waiting for. Those between two requests the server closes itself, but
   * not those on which nothing was ever sent.
   */
  endAfterAnswers(): void {
    this.#closing = true;
    for (const socket of this.#open) {
      const response = this.newestOf(socket);
      if (response === undefined && socket.bytesRead === 0) socket.destroy();
      if (response === undefined || response.writableFinished) continue;
      // Tells the caller, and has node end the connection behind the answer.
      if (!response.headersSent) response.shouldKeepAlive = false;
      else response.once("close", () => this.#server.closeIdleConnections());
    }
  }

  /** Cuts every connection, also those that node has let go of, such as that of a `CONNECT`. */
  destroyAll(): void {
    for (const socket of this.#open) socket.destroy();
  }
}
