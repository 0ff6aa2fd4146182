import { EventEmitter, once } from "node:events";
import { fileURLToPath } from "node:url";
import threads, { MessageChannel, type MessagePort, type WorkerOptions } from "node:worker_threads";
import type { ScriptRun } from "./thread-host.ts";

// In the place of `node:worker_threads` for `runtime/process.ts` where tests run. Most tests need an empty store, and a new
// thread that loads the engine costs more than all that the store does then. So the threads of stores are used again: each runs
// the store's script from its beginning, with a port and variables of its own, and is free for the next store once the script
// has closed the port and the engine has let go of the file. To wait for the latter takes as much as all else that an empty store
// does; where nobody opens the folder again, nobody waits.

const { Worker: Thread } = threads;
type Thread = threads.Worker;

/** How many threads wait for the next store. */
const MAX_IDLE = 4;

const idle: Thread[] = [];

/** What `runtime/process.ts` starts: a thread, for one run of the store's script. */
class StoreThread extends EventEmitter {
  readonly #thread: Thread;
  readonly #port: MessagePort;
  readonly #ended = Promise.withResolvers<number>();

  constructor(script: URL, options: WorkerOptions) {
    super();
    const { port1, port2: port } = new MessageChannel();
    this.#port = port1;
    const free = idle.pop();
    // As Node tells of a new one, for tests that want to end it.
    if (free !== undefined) EventEmitter.prototype.emit.call(process, "worker", free);
    this.#thread = free ?? new Thread(new URL("./thread-host.ts", import.meta.url), options);
    this.#thread.ref();
    this.#thread.on("message", this.#onFree).on("error", this.#onError).on("exit", this.#onExit);
    // The messages which the script posted last come before that.
    const closed = once(port1, "close");
    port1.on("message", (message: unknown) => this.emit("message", message));
    port1.on("messageerror", (error: Error) => this.emit("messageerror", error));
    void Promise.all([this.#ended.promise, closed]).then(([code]) => this.emit("exit", code));
    const run: ScriptRun = { path: fileURLToPath(script), port, isLastOfFile: isInNewFolder };
    this.#thread.postMessage(run, [port]);
  }

  postMessage(message: unknown, transfer: readonly ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer);
  }

  /** Ends the thread itself, so nobody uses it again. */
  terminate(): Promise<number> {
    return this.#thread.terminate();
  }

  readonly #onFree = (): void => {
    this.#thread.off("message", this.#onFree).off("error", this.#onError).off("exit", this.#onExit);
    this.#thread.unref();
    if (idle.length < MAX_IDLE) idle.push(this.#thread);
    else void this.#thread.terminate();
    this.#ended.resolve(0);
  };

  readonly #onError = (error: unknown): void => void this.emit("error", error);

  readonly #onExit = (code: number): void => this.#ended.resolve(code);
}

/** Set while a store is opened in a folder that nobody opens again. */
let isInNewFolder = false;

/** Called with `new`: starts the thread of a store in the pool, and any other as `node:worker_threads` does. */
export function Worker(script: URL, options: WorkerOptions): StoreThread | Thread {
  const isPooled = options.name === "evreg-store" && script.pathname.endsWith(".cjs");
  return isPooled ? new StoreThread(script, options) : new Thread(script, options);
}

/** Does `open`, which opens a store in a folder that nobody opens again once it is closed. */
export async function inNewFolder<T>(open: () => Promise<T>): Promise<T> {
  isInNewFolder = true;
  try {
    return await open();
  } finally {
    isInNewFolder = false;
  }
}
