import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { systemClock } from "../../runtime/clock.ts";
import { compactHeap, onIdle, threadCpuMs } from "../../runtime/heap.ts";
import { readOf, runRead } from "./group-commit.ts";
import {
  ByteWriter,
  type ReaderSetup,
  respond,
  type ThreadAnswer,
  type ToThread,
} from "./thread/protocol.ts";
import { ReadConnection } from "./thread/connection.ts";

/** The thread that reads the data file, while another one writes it. */
export class ReaderThread {
  readonly #port: MessagePort;
  #connection: ReadConnection | undefined;
  /** Why it could not open the file. */
  #failure: unknown;
  #key: Uint8Array | undefined;
  readonly #short: ToThread[] = [];
  readonly #long: ToThread[] = [];

  constructor(port: MessagePort) {
    this.#port = port;
  }

  start(): void {
    this.#port.on("message", (message: ToThread) => {
      this.#take(message);
      this.#serve();
    });
    onIdle(systemClock, threadCpuMs, () => {
      this.#connection?.shrink();
      compactHeap();
    });
  }

  #take(message: ToThread): void {
    // The last thing that it is asked is to close.
    const isLast =
      message.kind === "close" || (message.kind === "read" && readOf(message.ask.operation).isLong);
    (isLast ? this.#long : this.#short).push(message);
  }

  /** A short read waits for one long read at most. */
  #serve(): void {
    for (;;) {
      this.#takeWaiting();
      const request = this.#short.shift() ?? this.#long.shift();
      if (request === undefined) return;
      respond(this.#port, request.id, () => this.#answer(request));
      if (request.kind === "close") return this.#port.close();
    }
  }

  /** Takes the messages that wait, without a turn of the event loop. */
  #takeWaiting(): void {
    for (;;) {
      const waiting = receiveMessageOnPort(this.#port);
      if (waiting === undefined) return;
      this.#take(waiting.message as ToThread);
    }
  }

  #answer({ kind, ask }: ToThread): ThreadAnswer {
    switch (kind) {
      case "openToRead":
        this.#open(ask);
        return {};
      case "read": {
        if (this.#connection === undefined) throw this.#failure;
        const out = new ByteWriter();
        const value = this.#connection.read((sql) => runRead(sql, ask, out, this.#key));
        return { value, bytes: out.pack() };
      }
      case "close":
        this.#connection?.close();
        return {};
      case "openToWrite":
      case "write":
        break;
    }
    throw new Error(`${kind} is not for the thread that reads`);
  }

  #open({ path, file, key }: ReaderSetup): void {
    this.#key = key;
    try {
      this.#connection = ReadConnection.open(path, file);
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }
}
