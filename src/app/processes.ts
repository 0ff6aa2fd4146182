import cluster, { type Worker } from "node:cluster";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import type { Logger } from "../runtime/logger.ts";
import { programWords } from "../runtime/process.ts";

// Several servers in processes of their own behind one address, on a machine with many cores. The first process listens, hands each
// connection to the next of the others, and watches over them; each of those is a node like any other.

/** A process that ends again and again is not started more often. */
const RESTART_MS = 1_000;

export interface ProcessesOptions {
  readonly count: number;
  readonly logger: Logger;
  /** Resolves when all are to end. */
  readonly stop: Promise<unknown>;
}

/** Which of several processes this one is, from 1; `undefined` for one that is alone. The first of them speaks for all. */
export function processNumber(): number | undefined {
  return cluster.worker?.id;
}

/** What several processes behind one address have in common; `undefined` in one that is alone. */
export function processGroup(): { readonly pid: number; readonly instance: string } | undefined {
  // oxlint-disable-next-line node/no-process-env -- it is the way from a process to those that it starts
  const instance = process.env[GROUP];
  return cluster.isWorker && instance !== undefined ? { pid: process.ppid, instance } : undefined;
}

/** The variable by which the first process names the group. */
const GROUP = "PROCESSES_OF_EVREG";

/** Has the first process know that this one serves. */
export function reportServing(): void {
  cluster.worker?.send("serving");
}

export class Processes {
  readonly #options: ProcessesOptions;
  readonly #group = randomUUID();
  readonly #all = new Set<Worker>();
  #replacing: Promise<void> = Promise.resolve();
  #isStopping = false;

  constructor(options: ProcessesOptions) {
    this.#options = options;
    const [exec, ...args] = programWords();
    cluster.setupPrimary({ exec: exec!, args });
  }

  /**
   * Runs them until `stop`, or until the first one ends before it serves.
   * @returns the exit code of that one, which has said why; 0 otherwise
   */
  async run(): Promise<number> {
    const { count, stop } = this.#options;
    // The first one makes what all need, such as the tables and the first token.
    const code = await this.#start();
    if (code !== undefined) return code;
    for (let started = 1; started < count; started += 1) void this.#startInTheEnd();
    await stop;
    this.#isStopping = true;
    await this.#replacing;
    await Promise.all([...this.#all].map((worker) => this.#end(worker)));
    return 0;
  }

  /** Starts one after the other anew. What each has under way ends before it does, and the next is ended only after that. */
  replace(): void {
    this.#replacing = this.#replacing.then(() => this.#replaceAll());
  }

  async #replaceAll(): Promise<void> {
    const { logger } = this.#options;
    const before = Array.from(this.#all);
    for (const worker of before) {
      if (this.#isStopping || worker.isDead()) continue;
      if ((await this.#start()) !== undefined) {
        return logger.error({}, "A new process has not started; the others go on as they were.");
      }
      await this.#end(worker);
    }
    logger.info({}, "All processes were started anew.");
  }

  /** @returns `undefined` once it serves, or the exit code where it ends before that */
  async #start(): Promise<number | undefined> {
    const worker = cluster.fork({ [GROUP]: this.#group });
    this.#all.add(worker);
    const exited = once(worker, "exit") as Promise<[code: number | null, signal: string | null]>;
    const serving = once(worker, "message").then(() => undefined);
    const first = await Promise.race([serving, exited]);
    if (first !== undefined) {
      this.#all.delete(worker);
      return first[0] ?? 1;
    }
    void exited.then(([code, signal]) => this.#ended(worker, code, signal));
    return undefined;
  }

  async #ended(worker: Worker, code: number | null, signal: string | null): Promise<void> {
    const { logger } = this.#options;
    // One that was to end is not among them any more.
    if (!this.#all.delete(worker) || this.#isStopping) return;
    logger.error({ pid: worker.process.pid, code, signal }, "A process has ended and is started again.");
    await wait(RESTART_MS);
    await this.#startInTheEnd();
  }

  /** Starts one, and again where it ends before it serves. */
  async #startInTheEnd(): Promise<void> {
    while (!this.#isStopping && (await this.#start()) !== undefined) await wait(RESTART_MS);
  }

  async #end(worker: Worker): Promise<void> {
    this.#all.delete(worker);
    if (worker.isDead()) return;
    const exited = once(worker, "exit");
    worker.process.kill("SIGTERM");
    await exited;
  }
}
