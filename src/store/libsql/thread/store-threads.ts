import type { CommitObserver } from "../health.ts";
import type { OpenReport, WorkerSetup, WriteBatch } from "./protocol.ts";
import { ReaderClient, type Reply, type WriteReply, WriterClient } from "./worker-client.ts";

/** The two threads that have the data file open. They are started and ended together: one failure is the end of both. */
export class StoreThreads {
  readonly #writer: WriterClient;
  readonly #reader: ReaderClient;

  private constructor(writer: WriterClient, reader: ReaderClient) {
    this.#writer = writer;
    this.#reader = reader;
  }

  /** @throws EngineFailure, EvregError why the file could not be opened, once both threads have let go of it */
  static async start(
    setup: WorkerSetup,
    onCrash: (reason: string) => void,
    commits: CommitObserver,
  ): Promise<StoreThreads> {
    // It loads while the other one brings the file up to date, which has to be alone with it.
    const reader = ReaderClient.start(onCrash);
    try {
      const writer = await WriterClient.start(setup, onCrash, commits);
      reader.open(setup.path, writer.report.file, setup.encryption?.key);
      return new StoreThreads(writer, reader);
    } catch (error) {
      await reader.terminate();
      throw error;
    }
  }

  get report(): OpenReport {
    return this.#writer.report;
  }

  /** @throws EngineFailure when none of it was done, or (`fatal`) nobody knows */
  write(batch: WriteBatch): Promise<WriteReply> {
    return this.#writer.write(batch);
  }

  /**
   * Sees every commit that was reported before the call.
   * @throws EngineFailure; EvregError as the read does
   */
  read(operation: string, args: readonly unknown[]): Promise<Reply> {
    return this.#reader.read(operation, args);
  }

  /** What is done between two transactions, on the connection that writes. */
  readByWriter(operation: string, args: readonly unknown[]): Promise<Reply> {
    return this.#writer.read(operation, args);
  }

  /** Both finish what was requested. The log is moved into the file once nobody reads it. */
  async close(): Promise<void> {
    await this.#reader.close();
    await this.#writer.close();
  }

  /** The file is free when this resolves. */
  async terminate(): Promise<void> {
    await Promise.all([this.#reader.terminate(), this.#writer.terminate()]);
  }
}
