import type { MessagePort } from "node:worker_threads";
import { systemClock } from "../../runtime/clock.ts";
import { compactHeap, onIdle, threadCpuMs } from "../../runtime/heap.ts";
import { readOf, runRead } from "./group-commit.ts";
import { ByteWriter, post, takeWaiting, toWireError, type ToWorker } from "./thread/protocol.ts";
import { ReadConnection } from "./thread/read-connection.ts";

type ReadMessage = ToWorker & { readonly kind: "read" };

/** The thread that reads the data file, while another one writes it. */
export class Reader {
  readonly #port: MessagePort;
  #connection: ReadConnection | undefined;
  #key: Uint8Array | undefined;
  /** Why it could not open the file. */
  #failure: unknown;
  readonly #short: ReadMessage[] = [];
  readonly #long: ReadMessage[] = [];
  #isClosing = false;

  constructor(port: MessagePort) {
    this.#port = port;
  }

  start(): void {
    this.#port.on("message", (message: ToWorker) => {
      this.#take(message);
      this.#serve();
    });
    const compact = (): void => {
      this.#connection?.shrink();
      compactHeap();
    };
    onIdle(systemClock, threadCpuMs, compact);
  }

  #take(message: ToWorker): void {
    if (message.kind === "read") (readOf(message.operation).isLong ? this.#long : this.#short).push(message);
    else if (message.kind === "open") this.#open(message);
    else if (message.kind === "close") this.#isClosing = true;
  }

  #open({ path, file, key }: ToWorker & { readonly kind: "open" }): void {
    this.#key = key;
    try {
      this.#connection = ReadConnection.open(path, file);
    } catch (error) {
      this.#failure = error;
    }
  }

  /** A short read waits for one long read at most. */
  #serve(): void {
    for (;;) {
      takeWaiting(this.#port, (message) => this.#take(message));
      const next = this.#short.shift() ?? this.#long.shift();
      if (next === undefined) break;
      this.#run(next);
    }
    if (!this.#isClosing) return;
    this.#connection?.close();
    this.#port.close();
  }

  #run(message: ReadMessage): void {
    const { id } = message;
    const out = new ByteWriter();
    try {
      if (this.#connection === undefined) throw this.#failure;
      const value = this.#connection.read((sql) => runRead(sql, message, out, this.#key));
      post(this.#port, { kind: "readDone", id, outcome: { ok: value }, bytes: out.pack() });
    } catch (error) {
      post(this.#port, { kind: "readDone", id, outcome: { error: toWireError(error) } });
    }
  }
}
