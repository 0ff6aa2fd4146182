import { connect } from "node:net";
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** One answer as it came off the wire. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A bare TCP connection, to send what no HTTP library would. */
export class RawConnection {
  readonly #socket: Socket;
  #received = Buffer.alloc(0);
  #closed = false;
  readonly #changed = new Set<() => void>();

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#notify();
    });
    // A reset shows as a close; what had arrived before it is what a test looks at.
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#closed = true;
      this.#notify();
    });
  }

  /**
   * @param options.halfOpen keeps its own side open when the server has closed its side
   * @param options.from the address it comes from
   * @param options.tls has it encrypted, whatever the certificate
   */
  static async open(
    port: number,
    options: { readonly halfOpen?: boolean; readonly from?: string; readonly tls?: boolean } = {},
  ): Promise<RawConnection> {
    const { halfOpen: allowHalfOpen = false, from: localAddress = "127.0.0.1", tls = false } = options;
    const where = { port, host: "127.0.0.1", noDelay: true, allowHalfOpen, localAddress };
    const socket = tls ? connectTls({ ...where, rejectUnauthorized: false }) : connect(where);
    const connection = new RawConnection(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once(tls ? "secureConnect" : "connect", resolve);
      socket.once("error", reject);
    });
    return connection;
  }

  /** @param text each character is one byte */
  send(text: string | Uint8Array): void {
    this.#socket.write(typeof text === "string" ? Buffer.from(text, "latin1") : text);
  }

  /** Everything that arrived and was not taken as an answer. */
  get pending(): string {
    return this.#received.toString("latin1");
  }

  /** The next whole answer. Rejects when the connection ends before it is. */
  async answer(options: { readonly toHead?: boolean } = {}): Promise<RawAnswer> {
    for (;;) {
      const answer = this.#take(options.toHead === true);
      if (answer !== undefined) return answer;
      if (this.#closed) throw new Error(`The connection ended after ${JSON.stringify(this.pending)}`);
      await this.#change();
    }
  }

  /** Resolves when the server has closed the connection. */
  async closed(): Promise<void> {
    while (!this.#closed) await this.#change();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Ends it as a crash of its host would: the server's side fails. */
  reset(): void {
    this.#socket.resetAndDestroy();
  }

  /** Takes no more bytes off the wire. */
  stopReading(): void {
    this.#socket.pause();
  }

  startReading(): void {
    this.#socket.resume();
  }

  #take(toHead: boolean): RawAnswer | undefined {
    const headEnd = this.#received.indexOf("\r\n\r\n");
    if (headEnd === -1) return undefined;
    const [statusLine = "", ...lines] = this.#received.subarray(0, headEnd).toString("latin1").split("\r\n");
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const colon = line.indexOf(":");
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    const status = Number(statusLine.split(" ")[1]);
    const length = toHead || status < 200 ? 0 : Number(headers["content-length"] ?? 0);
    const end = headEnd + 4 + length;
    if (this.#received.length < end) return undefined;
    const body = this.#received.subarray(headEnd + 4, end).toString("utf8");
    this.#received = this.#received.subarray(end);
    return { status, headers, body };
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      const once = (): void => {
        this.#changed.delete(once);
        resolve();
      };
      this.#changed.add(once);
    });
  }

  #notify(): void {
    for (const listener of this.#changed) listener();
  }
}
