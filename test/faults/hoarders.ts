import { connect, type Socket } from "node:net";
import { parentPort, workerData } from "node:worker_threads";

/** What callers do that take of a server and give nothing back. In a thread, so that they do not slow those that are timed. */
export interface Hoarding {
  readonly port: number;
  readonly connections: number;
  /** Sent on each connection. */
  readonly head: string;
  /** Sent behind it. */
  readonly bodyBytes: number;
}

/** How far they have come. */
export interface Hoard {
  /** Connections of which the server has taken so much of the body. */
  readonly taken: number;
  readonly refused: number;
  readonly closed: number;
  /** Of all bodies, handed to the system. */
  readonly sentBytes: number;
}

const MOST_BYTES = 12 * 1024 * 1024;
/** Not that of the other callers. */
const FROM = process.platform === "linux" ? "127.0.0.2" : "127.0.0.1";

const { port, connections, head, bodyBytes } = workerData as Hoarding;
const piece = Buffer.alloc(64 * 1024, " ");
const open: Socket[] = [];
const refused = new Set<Socket>();
let closed = 0;

for (let count = 0; count < connections; count += 1) {
  const socket = connect({ port, host: "127.0.0.1", localAddress: FROM });
  open.push(socket);
  socket.on("error", () => {});
  socket.on("close", () => {
    closed += 1;
  });
  // With a request and no body it is the answer that is held: nothing of it is taken.
  if (head !== "" && bodyBytes === 0) socket.pause();
  else socket.on("data", (bytes) => bytes.includes("HTTP/1.1 503") && refused.add(socket));
  socket.write(head);
  let left = bodyBytes;
  const send = (): void => {
    while (left > 0) {
      const bytes = Math.min(left, piece.length);
      left -= bytes;
      if (!socket.write(piece.subarray(0, bytes))) return;
    }
  };
  socket.on("drain", send);
  send();
}

parentPort?.on("message", () => {
  const taken = open.filter(
    (socket) => !refused.has(socket) && socket.bytesWritten - socket.writableLength > MOST_BYTES,
  );
  const sentBytes = open.reduce((sum, socket) => sum + socket.bytesWritten - socket.writableLength, 0);
  const hoard: Hoard = { taken: taken.length, refused: refused.size, closed, sentBytes };
  parentPort?.postMessage(hoard, []);
});
