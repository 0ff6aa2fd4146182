import type { ErrorBody, EvregError } from "../domain/error.ts";
import type { BatchResult, Event, NewEvent } from "../domain/event.ts";
import { itemsOf, parseLine, settledBy, type Pending, type Settled } from "./bulk-line.ts";
import type { Line } from "./ndjson.ts";

/** A batch is sent when it holds this many events or bytes, or when the input pauses. */
const BATCH_ITEMS = 500;
const BATCH_BYTES = 8 * 1024 * 1024;
export interface BulkOptions {
  readonly lines: AsyncIterable<readonly Line[]>;
  readonly publish: (
    items: readonly (NewEvent | EvregError)[],
    options: { atomic?: boolean },
  ) => Promise<BatchResult>;
  /** `stop`: nothing behind the first refused line is published, everything before it is. */
  readonly onError: "stop" | "continue";
  readonly signal: AbortSignal;
  readonly accepted: (events: readonly Event[]) => Promise<void> | void;
  readonly refused: (line: Line, error: ErrorBody) => void;
  /** Called when a batch is settled. */
  readonly progress: (state: BulkState) => void;
}

export interface BulkState {
  readonly accepted: number;
  /** Of the accepted, those that were there already: their idempotency key stands for an earlier event. */
  readonly replayed: number;
  readonly refused: number;
  /** Every line up to this one is published or refused; those behind it are as they were. */
  readonly settledLine: number;
  /** Bytes of input up to that line's end. */
  readonly settledBytes: number;
}

export interface BulkOutcome extends BulkState {
  readonly end: "all" | "stopped" | "interrupted" | "failed";
  /** Of `failed`: what went wrong with the target, not with a line. */
  readonly failure?: unknown;
  /** Of `failed`: the last line of a batch whose fate is not known. */
  readonly doubtfulLine?: number;
}

/** Publishes NDJSON lines in order, holding one batch at a time. */
export async function publishLines(options: BulkOptions): Promise<BulkOutcome> {
  const { signal, onError } = options;
  const state = { accepted: 0, replayed: 0, refused: 0, settledLine: 0, settledBytes: 0 };
  let batch: Pending[] = [];
  let batchBytes = 0;

  const settle = (line: Line) => {
    state.settledLine = line.number;
    state.settledBytes = line.endsAt;
    options.progress({ ...state });
  };
  /** Answers whether to go on. */
  const send = async (): Promise<boolean> => {
    const sent = batch;
    const last = sent.at(-1);
    if (last === undefined) return true;
    const { accepted, replayed, refused } = await publishBatch(sent, options);
    batch = [];
    batchBytes = 0;
    state.accepted += accepted.length;
    state.replayed += replayed;
    await options.accepted(accepted.map(({ event }) => event));
    state.refused += refused.length;
    for (const { line, error } of refused) options.refused(line, error);
    const stopAt = onError === "stop" ? refused[0]?.line : undefined;
    settle(stopAt ?? last.line);
    return stopAt === undefined;
  };

  try {
    for await (const lines of options.lines) {
      for (const line of lines) {
        if (signal.aborted) return { ...state, end: "interrupted" };
        const size = line.bytes?.length ?? 0;
        if (batch.length >= BATCH_ITEMS || (batch.length > 0 && batchBytes + size > BATCH_BYTES)) {
          if (!(await send())) return { ...state, end: "stopped" };
        }
        batch.push({ line, item: parseLine(line) });
        batchBytes += size;
      }
      if (signal.aborted) return { ...state, end: "interrupted" };
      if (!(await send())) return { ...state, end: "stopped" };
      const last = lines.at(-1);
      if (last !== undefined && last.number > state.settledLine) settle(last);
    }
    return { ...state, end: "all" };
  } catch (failure) {
    if (signal.aborted && isAbort(failure)) return { ...state, end: "interrupted" };
    const doubtful = batch.at(-1)?.line.number;
    return {
      ...state,
      end: "failed",
      failure,
      ...(doubtful === undefined ? {} : { doubtfulLine: doubtful }),
    };
  }
}

/**
 * One batch. To stop at the first refused line, all is sent as all-or-nothing: when it is refused, what comes before the
 * first refused line is sent again without the rest, so nothing behind that line is ever stored.
 */
async function publishBatch(batch: readonly Pending[], { publish, onError }: BulkOptions): Promise<Settled> {
  if (onError === "continue") return settledBy(batch, await publish(itemsOf(batch), {}));
  let rest = batch;
  let refused: Settled["refused"] = [];
  while (rest.length > 0) {
    const settled = settledBy(rest, await publish(itemsOf(rest), { atomic: true }));
    const [first] = settled.refused;
    if (first === undefined) return { ...settled, refused };
    refused = [first];
    rest = rest.slice(
      0,
      rest.findIndex(({ line }) => line === first.line),
    );
  }
  return { accepted: [], replayed: 0, refused };
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
