import { EvregError, type ErrorBody } from "../domain/error.ts";
import { EVENT_LIMITS, type BatchResult, type Event, type NewEvent } from "../domain/event.ts";
import { parseBatchItem } from "../domain/publish-body.ts";
import type { Line } from "./ndjson.ts";

/** The longest line that still fits into the body of a batch by itself. */
export const MAX_LINE_BYTES = EVENT_LIMITS.batchBytes - 1_024;

/** A line that can be sent. */
export interface Pending {
  readonly line: Line;
  readonly item: NewEvent;
}

/** What became of the lines of one batch, in their order. */
export interface Settled {
  readonly accepted: readonly { readonly line: Line; readonly event: Event }[];
  readonly refused: readonly { readonly line: Line; readonly error: ErrorBody }[];
}

/** The event on a line, or why it is none. How large a payload may be is for the target to say. */
export function parseLine(line: Line): NewEvent | EvregError {
  if (line.bytes === undefined) {
    const most = MAX_LINE_BYTES.toLocaleString("en");
    return new EvregError("too_large", `The line is longer than ${most} bytes.`, { limit: MAX_LINE_BYTES });
  }
  try {
    return parseBatchItem(line.bytes, { payloadBytes: EVENT_LIMITS.batchBytes });
  } catch (error) {
    if (error instanceof EvregError) return error;
    throw error;
  }
}

export function itemsOf(batch: readonly Pending[]): NewEvent[] {
  return batch.map(({ item }) => item);
}

export function settledBy(batch: readonly Pending[], result: BatchResult): Settled {
  const accepted = batch.flatMap(({ line }, at) => {
    const event = result.data[at];
    return event === null || event === undefined ? [] : [{ line, event }];
  });
  const refused = result.errors
    .toSorted((one, other) => one.index - other.index)
    .flatMap(({ index, ...error }) => {
      const line = batch[index]?.line;
      return line === undefined ? [] : [{ line, error }];
    });
  return { accepted, refused };
}
