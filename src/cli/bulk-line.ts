import { EvregError, type ErrorBody } from "../domain/error.ts";
import { EVENT_LIMITS, type BatchOptions, type BatchResult, type Event } from "../domain/event.ts";
import { EventLine, type BatchItem } from "../domain/event-line.ts";
import type { Line } from "./ndjson.ts";

/** The longest line that still fits into the body of a batch by itself. */
export const MAX_LINE_BYTES = EVENT_LIMITS.batchBytes - 1_024;

/** A line with the event on it, or why it has none; the latter is sent as well, so that all are refused in their order. */
export interface Pending {
  readonly line: Line;
  readonly item: BatchItem;
}

export type PublishItems = (items: readonly BatchItem[], options: BatchOptions) => Promise<BatchResult>;

/** What became of the lines of one batch, in their order. */
export interface Settled {
  readonly accepted: number;
  /** The accepted ones; none when the target was not asked for them. */
  readonly events: readonly Event[];
  /** Of the accepted, those whose idempotency key stands for an earlier event. */
  readonly replayed: number;
  readonly refused: readonly { readonly line: Line; readonly error: ErrorBody }[];
}

/**
 * The event on a line, or why it is none. How large a payload may be is for the target to say.
 * @param keyOf the idempotency key of a line that names none
 */
export function itemOn(line: Line, keyOf?: (line: Line) => string): BatchItem {
  if (line.bytes === undefined) {
    const most = MAX_LINE_BYTES.toLocaleString("en");
    return new EvregError(
      "too_large",
      `The line is longer than ${most} bytes, more than an event can have. Is there a line break after each event?`,
      { limit: MAX_LINE_BYTES },
    );
  }
  if (
    line.bytes[0] !== BRACE &&
    ARRAY.test(Buffer.from(line.bytes.subarray(0, ARRAY_WITHIN)).toString("latin1"))
  ) {
    return new EvregError(
      "invalid",
      "There must be one event a line, not an array. To make lines of one: jq -c '.[]' FILE | evreg publish --batch -",
    );
  }
  return EventLine.from(line.bytes, keyOf === undefined ? undefined : () => keyOf(line));
}

const BRACE = 0x7b;
const ARRAY = /^\s*\[/;
const ARRAY_WITHIN = 64;

export function itemsOf(batch: readonly Pending[]): BatchItem[] {
  return batch.map(({ item }) => item);
}

export function settledBy(batch: readonly Pending[], result: BatchResult): Settled {
  const refused = result.errors
    .toSorted((one, other) => one.index - other.index)
    .flatMap(({ index, ...error }) => {
      const line = batch[index]?.line;
      return line === undefined ? [] : [{ line, error }];
    });
  const { accepted, replayed } = result.meta;
  return { accepted, events: result.data.filter((event) => event !== null), replayed, refused };
}

/**
 * One batch. To stop at the first refused line, all is sent as all-or-nothing: when it is refused, what comes before the
 * first refused line is sent again without the rest, so nothing behind that line is ever stored.
 */
export async function publishPending(
  batch: readonly Pending[],
  publish: PublishItems,
  { onError, minimal }: { readonly onError: "stop" | "continue"; readonly minimal: boolean },
): Promise<Settled> {
  if (onError === "continue") return settledBy(batch, await publish(itemsOf(batch), { minimal }));
  let rest = batch;
  let refused: Settled["refused"] = [];
  while (rest.length > 0) {
    const settled = settledBy(rest, await publish(itemsOf(rest), { atomic: true, minimal }));
    const [first] = settled.refused;
    if (first === undefined) return { ...settled, refused };
    refused = [first];
    rest = rest.slice(
      0,
      rest.findIndex(({ line }) => line === first.line),
    );
  }
  return { accepted: 0, events: [], replayed: 0, refused };
}
