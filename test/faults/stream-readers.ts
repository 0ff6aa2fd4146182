import { connect, type Socket } from "node:net";

// A process of its own for many readers of one stream: node stream-readers.ts URL COUNT. The first takes nothing once all are
// ready. Tells its parent how far the others are.

/** Reads a stream as it comes on the wire: of 500,000 messages a second none may be parsed. */
class WireReader {
  readonly socket: Socket;
  last = 0;
  /** How many did not follow on the one before. */
  faults = 0;
  isReady = false;
  #rest = "";

  constructor(url: string) {
    const { port } = new URL(url);
    this.socket = connect(Number(port), "127.0.0.1");
    this.socket.on("error", () => undefined);
    this.socket.write(`GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
    this.socket.on("data", (bytes) => this.#take(this.#rest + bytes.toString("latin1")));
  }

  #take(text: string): void {
    this.isReady ||= text.includes("event: ready");
    let end = 0;
    for (let at = text.indexOf(MEMBER); at !== -1; at = text.indexOf(MEMBER, end)) {
      const comma = text.indexOf(",", at);
      if (comma === -1) break;
      const rowid = Number(text.slice(at + MEMBER.length, comma));
      if (this.last !== 0 && rowid !== this.last + 1) this.faults += 1;
      this.last = rowid;
      end = comma;
    }
    this.#rest = text.slice(Math.max(end, text.length - 100));
  }
}

const MEMBER = '"rowid":';

export interface ReadersReport {
  readonly isReady: boolean;
  /** Of the one that is farthest behind. */
  readonly last: number;
  readonly faults: number;
}

const [, , url = "", count = "0"] = process.argv;
const [stalled, ...others] = Array.from({ length: Number(count) }, () => new WireReader(url));
setInterval(() => {
  const isReady = [stalled!, ...others].every((reader) => reader.isReady);
  if (isReady) stalled!.socket.pause();
  const last = Math.min(...others.map((reader) => reader.last));
  const faults = others.reduce((sum, reader) => sum + reader.faults, 0);
  process.send?.({ isReady, last, faults } satisfies ReadersReport);
}, 50);
process.on("disconnect", () => process.exit());
