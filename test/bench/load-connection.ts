import { connect, type Socket } from "node:net";
import { HttpReader } from "./http-reader.ts";

export interface LoadAnswer {
  readonly status: number;
  /** Kept when asked for, and for every status that was not expected. */
  readonly body: Buffer | undefined;
}

/** One keep-alive connection with at most one request under way. */
export class LoadConnection {
  readonly #socket: Socket;
  #onAnswer: ((answer: LoadAnswer) => void) | undefined;

  private constructor(
    socket: Socket,
    keepsBody: (status: number) => boolean,
    onLost: (error: Error) => void,
  ) {
    this.#socket = socket;
    const reader = new HttpReader({
      keepsBody: (head) => keepsBody(statusOf(head)),
      onMessage: (head, body) => {
        const status = statusOf(head);
        const onAnswer = this.#onAnswer;
        this.#onAnswer = undefined;
        if (onAnswer === undefined) onLost(new Error(`An answer ${status} came that nobody asked for.`));
        else onAnswer({ status, body });
      },
    });
    socket.on("data", (chunk: Buffer) => reader.push(chunk));
    socket.on("error", onLost);
    socket.on("close", () => {
      if (this.#onAnswer !== undefined) onLost(new Error("The connection was closed before an answer came."));
    });
  }

  static async open(
    port: number,
    keepsBody: (status: number) => boolean,
    onLost: (error: Error) => void,
  ): Promise<LoadConnection> {
    const socket = await new Promise<Socket>((resolve, reject) => {
      const opening = connect({ port, host: "127.0.0.1", noDelay: true }, () => resolve(opening));
      opening.once("error", reject);
    });
    return new LoadConnection(socket, keepsBody, onLost);
  }

  /** The bytes must not change until the answer is there. */
  send(bytes: Buffer, onAnswer: (answer: LoadAnswer) => void): void {
    this.#onAnswer = onAnswer;
    this.#socket.write(bytes);
  }

  close(): void {
    this.#onAnswer = undefined;
    this.#socket.destroy();
  }
}

/** From `HTTP/1.1 201 …`. */
function statusOf(head: string): number {
  return Number(head.slice(9, 12));
}
