import { type ErrorBody, EvregError, HTTP_STATUS } from "../../domain/error.ts";
import { type Event, EVENT_LIMITS } from "../../domain/event.ts";
import {
  type BatchEntry,
  type BatchOutcome,
  isCertain,
  itemOn,
  type Line,
  MAX_LINE_BYTES,
  publishBatch,
  type PublishItems,
  publishUntilRefused,
} from "./bulk-batch.ts";

/** A batch is sent when it has this many events or bytes, or when the input pauses and a request may begin. */
const BATCH = { items: 500, bytes: 1024 * 1024 };
/** The most that goes in one request, which is the most that can be stored wholly or not at all. */
const WHOLE = { items: EVENT_LIMITS.batchItems, bytes: MAX_LINE_BYTES };

export interface BulkOptions {
  readonly lines: AsyncIterable<readonly Line[]>;
  readonly publish: PublishItems;
  /** Requests in flight at once; with more than one, events are not stored in the order of the lines. */
  readonly concurrency: number;
  /** The idempotency key of a line that names none. */
  readonly keyOf?: ((line: Line) => string) | undefined;
  /**
   * `stop`: everything before the first refused line is published, and nothing after it; for one request at a time only.
   * `atomic`: with a refused line nothing is published.
   */
  readonly onError: "stop" | "continue" | "atomic";
  readonly signal: AbortSignal;
  /** Called when nothing more is sent, so that nobody waits for a producer that has paused; the lines then abort. */
  readonly stopReading: () => void;
  /**
   * These three are called in the order of the lines, whatever order the answers come in. Without the first one the events
   * are not requested.
   */
  readonly accepted?: ((events: readonly Event[]) => Promise<void> | void) | undefined;
  readonly refused: (line: Line, error: ErrorBody) => void;
  /** Called when a batch is settled, after the two above. */
  readonly settled: (state: BulkState) => void;
}

export interface BulkState {
  readonly accepted: number;
  /** How many of the accepted have an idempotency key that stands for an older event. */
  readonly replayed: number;
  readonly refused: number;
  /** How many of the refused have an idempotency key that stands for another event. */
  readonly usedKeys: number;
  /** Every line up to this one is published or refused. */
  readonly settledLine: number;
  /** Bytes of input up to that line's end. */
  readonly settledBytes: number;
}

export const NOTHING_SETTLED: BulkState = {
  accepted: 0,
  replayed: 0,
  refused: 0,
  usedKeys: 0,
  settledLine: 0,
  settledBytes: 0,
};

export interface BulkOutcome extends BulkState {
  readonly end: "all" | "stopped" | "interrupted" | "failed";
  /** What went wrong with the target, not with a line. */
  readonly failure?: unknown;
  /** The last of the lines after the settled ones that may be published or not. */
  readonly lastUncertainLine?: number;
}

/** Publishes NDJSON lines, holding one batch more than there are requests in flight. */
export function publishLines(options: BulkOptions): Promise<BulkOutcome> {
  return new BulkRun(options).run();
}

class BulkRun {
  readonly #options: BulkOptions;
  #state = NOTHING_SETTLED;
  #batch: BatchEntry[] = [];
  #batchBytes = 0;
  /** Each settles its batch after the one before it, so the first is the next to be settled. */
  readonly #inFlight: Promise<void>[] = [];
  /** Once set, no batch is sent any more. */
  #end: "stopped" | "interrupted" | "failed" | undefined;
  #failure: unknown;
  #lastUncertainLine = 0;
  #isInputPaused = false;

  constructor(options: BulkOptions) {
    this.#options = options;
  }

  get #isOver(): boolean {
    return this.#end !== undefined || this.#options.signal.aborted;
  }

  get #isFree(): boolean {
    return this.#inFlight.length < this.#options.concurrency;
  }

  async run(): Promise<BulkOutcome> {
    let error: unknown;
    const isWhole = await this.#readAll().catch((thrown: unknown) => {
      error = thrown;
      return false;
    });
    while (this.#inFlight.length > 0) await this.#inFlight[0];
    if (error !== undefined && !(this.#isOver && isAbort(error))) this.#fail(error);
    const isUncertain = this.#lastUncertainLine > this.#state.settledLine;
    return {
      ...this.#state,
      end: this.#end ?? (isWhole ? "all" : "interrupted"),
      ...(this.#failure === undefined ? {} : { failure: this.#failure }),
      ...(isUncertain ? { lastUncertainLine: this.#lastUncertainLine } : {}),
    };
  }

  /** Answers whether all of the input was sent. */
  async #readAll(): Promise<boolean> {
    const { lines: groups, keyOf, signal, onError } = this.#options;
    const most = onError === "atomic" ? WHOLE : BATCH;
    for await (const lines of groups) {
      this.#isInputPaused = false;
      for (const line of lines) {
        if (signal.aborted) return false;
        const size = line.bytes?.length ?? 0;
        const isFull = this.#batch.length >= most.items || this.#batchBytes + size > most.bytes;
        if (isFull && onError === "atomic") throw tooManyLines();
        if (isFull && !(await this.#sendWhenFree())) return false;
        this.#batch.push({ line, item: itemOn(line, keyOf) });
        this.#batchBytes += size;
      }
      if (onError === "atomic") continue;
      if (this.#isFree) this.#send();
      this.#isInputPaused = true;
    }
    return !signal.aborted && (await this.#sendWhenFree());
  }

  /** Waits until a request may begin. Answers whether to go on. */
  async #sendWhenFree(): Promise<boolean> {
    while (!this.#isFree) await this.#inFlight[0];
    this.#send();
    return !this.#isOver;
  }

  #send(): void {
    const batch = this.#batch;
    const last = batch.at(-1)?.line;
    if (last === undefined || this.#isOver) return;
    this.#batch = [];
    this.#batchBytes = 0;
    const sending = this.#sendBatch(batch, last, this.#inFlight.at(-1)).finally(() => {
      void this.#inFlight.shift();
      // Lines of a producer that has paused do not wait for its next ones.
      if (this.#isInputPaused && this.#isFree) this.#send();
    });
    this.#inFlight.push(sending);
  }

  /** Never rejects. @param previous the batch to be settled first */
  async #sendBatch(
    batch: readonly BatchEntry[],
    last: Line,
    previous: Promise<void> | undefined,
  ): Promise<void> {
    const { publish, onError, accepted } = this.#options;
    try {
      const send = onError === "stop" ? publishUntilRefused : publishBatch;
      const sending = send(batch, publish, {
        minimal: accepted === undefined,
        ...(onError === "atomic" ? { atomic: true } : {}),
      });
      await Promise.allSettled([sending, previous]);
      await this.#settle(await sending, last);
    } catch (error) {
      if (!isCertain(error)) this.#lastUncertainLine = last.number;
      this.#fail(error);
    }
  }

  async #settle({ accepted, events, replayed, refused }: BatchOutcome, last: Line): Promise<void> {
    if (this.#end !== undefined) {
      // After a batch that failed nothing counts as settled, even where it is published.
      this.#lastUncertainLine = last.number;
      return;
    }
    const { onError } = this.#options;
    const stopAt = onError === "continue" ? undefined : refused[0]?.line;
    if (stopAt !== undefined) this.#stop("stopped");
    const settled = onError === "atomic" && stopAt !== undefined ? undefined : (stopAt ?? last);
    this.#state = {
      accepted: this.#state.accepted + accepted,
      replayed: this.#state.replayed + replayed,
      refused: this.#state.refused + refused.length,
      usedKeys:
        this.#state.usedKeys + refused.filter(({ error }) => error.code === HTTP_STATUS.conflict).length,
      settledLine: settled?.number ?? 0,
      settledBytes: settled?.endsAt ?? 0,
    };
    await this.#options.accepted?.(events);
    for (const { line, error } of refused) this.#options.refused(line, error);
    this.#options.settled(this.#state);
  }

  #fail(error: unknown): void {
    if (this.#end !== undefined) return;
    // An interruption ends the wait for a server that is away with that server's failure.
    this.#stop(this.#options.signal.aborted ? "interrupted" : "failed");
    this.#failure = error;
  }

  #stop(end: "stopped" | "interrupted" | "failed"): void {
    this.#end = end;
    this.#options.stopReading();
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

function tooManyLines(): EvregError {
  const items = EVENT_LIMITS.batchItems.toLocaleString("en");
  return new EvregError(
    "too_large",
    `--atomic takes at most ${items} lines of together 16 MiB, and this input has more. Nothing was published. Leave --atomic out, and give an --idempotency-key, so that the lines can be sent again without harm.`,
    { limit: EVENT_LIMITS.batchItems },
  );
}
