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
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** How many bytes the answer that began has. To join the pieces at each would take seconds for a large one. */
  #answerBytes = 0;
  #closed = false;
  readonly #changed = new Set<() => void>();

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk) => {
      this.#pieces.push(chunk);
      this.#bytes += chunk.length;
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
    return this.#received().toString("latin1");
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

  #received(): Buffer {
    if (this.#pieces.length !== 1) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0]!;
  }

  #take(toHead: boolean): RawAnswer | undefined {
    if (this.#bytes < this.#answerBytes) return undefined;
    const received = this.#received();
    const headEnd = received.indexOf("\r\n\r\n");
    if (headEnd === -1) return undefined;
    const [statusLine = "", ...lines] = received.subarray(0, headEnd).toString("latin1").split("\r\n");
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const colon = line.indexOf(":");
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    const status = Number(statusLine.split(" ")[1]);
    const length = toHead || status < 200 ? 0 : Number(headers["content-length"] ?? 0);
    const end = headEnd + 4 + length;
    this.#answerBytes = end;
    if (received.length < end) return undefined;
    const body = received.subarray(headEnd + 4, end).toString("utf8");
    this.#pieces = [received.subarray(end)];
    this.#bytes -= end;
    this.#answerBytes = 0;
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
