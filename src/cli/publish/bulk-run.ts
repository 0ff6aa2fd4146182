import { type ErrorBody, EvregError } from "../../domain/error.ts";
import { type Event, EVENT_LIMITS } from "../../domain/event.ts";
import {
  type BatchEntry,
  isCertain,
  itemOn,
  type Line,
  MAX_LINE_BYTES,
  publishBatch,
  type PublishItems,
} from "./bulk-batch.ts";

/** A batch is sent when it has this many events or bytes, or when the input pauses. */
const BATCH = { items: 500, bytes: 1024 * 1024 };
/** The most that goes in one request, which is the most that can be stored wholly or not at all. */
const WHOLE = { items: EVENT_LIMITS.batchItems, bytes: MAX_LINE_BYTES };

export interface BulkOptions {
  readonly lines: AsyncIterable<readonly Line[]>;
  readonly publish: PublishItems;
  /** The idempotency key of a line that names none. */
  readonly keyOf?: ((line: Line) => string) | undefined;
  /**
   * `stop`: of the first batch with a refused line nothing is published, and nothing after it. `atomic`: all lines are one
   * such batch.
   */
  readonly onError: "stop" | "continue" | "atomic";
  readonly signal: AbortSignal;
  /** Called in the order of the lines. Where it is absent, the events are not requested. */
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
  /** Every line up to this one is published or refused. */
  readonly settledLine: number;
  /** Bytes of input up to that line's end. */
  readonly settledBytes: number;
}

export const NOTHING_SETTLED: BulkState = {
  accepted: 0,
  replayed: 0,
  refused: 0,
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

/** Publishes NDJSON lines in their order, one batch after the other. */
export async function publishLines(options: BulkOptions): Promise<BulkOutcome> {
  const { lines: groups, publish, keyOf, onError, signal, accepted, refused, settled } = options;
  const most = onError === "atomic" ? WHOLE : BATCH;
  const how = { minimal: accepted === undefined, ...(onError === "continue" ? {} : { atomic: true }) };
  let state = NOTHING_SETTLED;
  let batch: BatchEntry[] = [];
  let batchBytes = 0;
  let sent: readonly BatchEntry[] = [];
  /** Answers whether to go on. */
  const send = async (): Promise<boolean> => {
    const last = batch.at(-1)?.line;
    if (last === undefined) return true;
    signal.throwIfAborted();
    sent = batch;
    batch = [];
    batchBytes = 0;
    const outcome = await publishBatch(sent, publish, how);
    const goesOn = onError === "continue" || outcome.refused.length === 0;
    state = {
      accepted: state.accepted + outcome.accepted,
      replayed: state.replayed + outcome.replayed,
      refused: state.refused + outcome.refused.length,
      settledLine: goesOn ? last.number : state.settledLine,
      settledBytes: goesOn ? last.endsAt : state.settledBytes,
    };
    await accepted?.(outcome.events);
    for (const { line, error } of outcome.refused) refused(line, error);
    settled(state);
    return goesOn;
  };
  try {
    for await (const lines of groups) {
      for (const line of lines) {
        const size = line.bytes?.length ?? 0;
        const isFull = batch.length >= most.items || batchBytes + size > most.bytes;
        if (isFull && onError === "atomic") throw tooManyLines();
        if (isFull && !(await send())) return { ...state, end: "stopped" };
        batch.push({ line, item: itemOn(line, keyOf) });
        batchBytes += size;
      }
      // What a slow producer has written does not wait for its next lines.
      if (onError !== "atomic" && !(await send())) return { ...state, end: "stopped" };
    }
    const isWhole = await send();
    signal.throwIfAborted();
    return { ...state, end: isWhole ? "all" : "stopped" };
  } catch (failure) {
    const lastLine = isCertain(failure) ? 0 : (sent.at(-1)?.line.number ?? 0);
    const uncertain = lastLine > state.settledLine ? { lastUncertainLine: lastLine } : {};
    return { ...state, ...uncertain, end: signal.aborted ? "interrupted" : "failed", failure };
  }
}

function tooManyLines(): EvregError {
  const items = EVENT_LIMITS.batchItems.toLocaleString("en");
  return new EvregError(
    "too_large",
    `--atomic takes at most ${items} lines of together 16 MiB, and this input has more. Nothing was published. Leave --atomic out, and give an --idempotency-key, so that the lines can be sent again without harm.`,
    { limit: EVENT_LIMITS.batchItems },
  );
}
