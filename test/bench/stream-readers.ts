import { connect, type Socket } from "node:net";
import { answerCalls } from "./calls.ts";

// Many readers of one stream, as raw sockets: nothing of what comes is parsed but whether it is all there.

const READY = Buffer.from("event: ready");

export interface Reading {
  readonly port: number;
  readonly token: string;
  /** One for each reader. */
  readonly paths: readonly string[];
  /**
   * Whether they go on once they have everything, but for the first, which takes nothing from then on. Else each begins
   * anew.
   */
  readonly follows: boolean;
}

interface ReadingResult {
  /** Of all readers. */
  readonly bytes: number;
  /** How often a reader has caught up, and begun anew. */
  readonly caughtUp: number;
  /** How often the server has cut one off or refused it. */
  readonly broken: number;
}

let stop: () => ReadingResult = () => ({ bytes: 0, caughtUp: 0, broken: 0 });

const calls = {
  /** They read until `end`. */
  begin({ port, token, paths, follows }: Reading): void {
    const open = new Set<Socket>();
    const result = { bytes: 0, caughtUp: 0, broken: 0 };
    let isEnding = false;
    const read = (path: string, reader: number): void => {
      const socket = connect(port, "127.0.0.1");
      let rest: Buffer = Buffer.alloc(0);
      let isReady = false;
      open.add(socket);
      socket.write(
        `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`,
      );
      socket.on("data", (chunk) => {
        result.bytes += chunk.length;
        if (isReady) return;
        const joint = Buffer.concat([rest, chunk.subarray(0, READY.length)]);
        isReady = chunk.includes(READY) || joint.includes(READY);
        rest = chunk.subarray(-READY.length);
        if (isReady && !follows) socket.destroy();
        if (isReady && follows && reader === 0) socket.pause();
      });
      socket.on("error", () => undefined);
      socket.on("close", () => {
        open.delete(socket);
        if (isEnding) return;
        if (isReady && !follows) result.caughtUp += 1;
        else result.broken += 1;
        read(path, reader);
      });
    };
    for (const [reader, path] of paths.entries()) read(path, reader);
    stop = () => {
      isEnding = true;
      for (const socket of open) socket.destroy();
      return result;
    };
  },
  /** Breaks all off. */
  end: (): ReadingResult => stop(),
};
export type StreamReadersCalls = typeof calls;

answerCalls(calls);
