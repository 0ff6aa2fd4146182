import { isPassing } from "../../client/backoff.ts";
import { type ErrorBody, EvregError, HTTP_STATUS } from "../../domain/error.ts";
import { type BatchOptions, type BatchResult, type Event, EVENT_LIMITS } from "../../domain/event.ts";
import { type BatchItem, readEventLine } from "../../domain/publish-body.ts";
import { escapeControl } from "../io/text.ts";

/** A line with its number, from 1; `undefined` bytes for one longer than allowed. */
export interface Line {
  readonly number: number;
  readonly bytes: Buffer | undefined;
  /** Bytes of input up to its end. */
  readonly endsAt: number;
}

const NEWLINE = 0x0a;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * The lines of an input of any length, in groups as they arrive, so that a slow producer's lines need not wait for others.
 * Blank lines are left out but counted. An overlong line is skipped without being held in memory.
 */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  maxLineBytes: number,
): AsyncGenerator<Line[]> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let number = 1;
  let endsAt = 0;

  const hold = (part: Buffer) => {
    heldBytes += part.length;
    endsAt += part.length;
    if (heldBytes <= maxLineBytes) held.push(part);
    else held = [];
  };
  const finish = (lines: Line[]): void => {
    const bytes = heldBytes > maxLineBytes ? undefined : joined(held, number === 1);
    if (bytes === undefined || !isBlank(bytes)) lines.push({ number, bytes, endsAt });
    held = [];
    heldBytes = 0;
    number += 1;
  };

  for await (const chunk of chunks) {
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      hold(chunk.subarray(start, end));
      endsAt += 1;
      finish(lines);
      start = end + 1;
    }
    hold(chunk.subarray(start));
    if (lines.length > 0) yield lines;
  }
  const last: Line[] = [];
  if (heldBytes > 0) finish(last);
  if (last.length > 0) yield last;
}

function joined(parts: readonly Buffer[], isFirst: boolean): Buffer {
  const bytes = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  return isFirst && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? bytes.subarray(3) : bytes;
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}

/** The longest line that still fits into the body of a batch by itself. */
export const MAX_LINE_BYTES = EVENT_LIMITS.batchBytes - 1_024;

/** A line with its event, or with why it has none: that is sent as well, so that lines are refused in their order. */
export interface BatchEntry {
  readonly line: Line;
  readonly item: BatchItem;
}

export type PublishItems = (items: readonly BatchItem[], options: BatchOptions) => Promise<BatchResult>;

/** The result for the lines of one batch, in their order. */
export interface BatchOutcome {
  readonly accepted: number;
  /** The accepted ones; none when they were not requested. */
  readonly events: readonly Event[];
  /** How many of the accepted have an idempotency key that stands for an older event. */
  readonly replayed: number;
  readonly refused: readonly { readonly line: Line; readonly error: ErrorBody }[];
}

const ARRAY = /^\s*\[/;
const MAX_SPACE_BYTES = 64;

/**
 * The event on a line, or why there is none. The target decides how large a payload may be.
 * @param keyOf the idempotency key of a line that names none
 */
export function itemOn(line: Line, keyOf?: (line: Line) => string): BatchItem {
  const { bytes } = line;
  if (bytes === undefined) {
    const maxBytes = MAX_LINE_BYTES.toLocaleString("en");
    return new EvregError(
      "too_large",
      `The line is longer than ${maxBytes} bytes, more than an event can have. Is there a line break after each event?`,
      { limit: MAX_LINE_BYTES },
    );
  }
  if (ARRAY.test(bytes.toString("latin1", 0, MAX_SPACE_BYTES))) {
    return new EvregError(
      "invalid",
      "There must be one event a line, not an array. To make lines of one: jq -c '.[]' FILE | evreg publish --batch -",
    );
  }
  return readEventLine(bytes, keyOf === undefined ? undefined : () => keyOf(line));
}

/** Publishes one batch in one request. */
export async function publishBatch(
  batch: readonly BatchEntry[],
  publish: PublishItems,
  options: BatchOptions,
): Promise<BatchOutcome> {
  const items = batch.map(({ item }) => item);
  const { data, errors, meta } = await publish(items, options);
  const refused = errors
    .toSorted((one, other) => one.index - other.index)
    .flatMap(({ index, ...error }) => {
      const line = batch[index]?.line;
      return line === undefined ? [] : [{ line, error }];
    });
  const { accepted, replayed } = meta;
  return { accepted, events: data.filter((event) => event !== null), replayed, refused };
}

/** One request is retried for so long. Nothing is lost when this ends, and a person wants to know. */
const RETRY_WINDOW_MS = 120_000;
const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 5_000;

interface RetryOptions {
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  /** Rejects when the signal aborts. */
  readonly sleep: (delayMs: number) => Promise<void>;
  readonly log: (line: string) => void;
}

/**
 * Retries a request for at most two minutes: after 250 ms, then doubling up to 5 s, or as `Retry-After` says. A request
 * that may have been stored is retried only where every item has an idempotency key. A server that never answered is
 * probably the wrong one, so that fails at once.
 */
export function withRetry(publish: PublishItems, options: RetryOptions): PublishItems {
  const { signal, nowMs, sleep, log } = options;
  let wasThere = false;
  let isLogged = false;
  return async (items, how) => {
    const isKeyed = items.every((item) => item instanceof EvregError || item.idempotency_key !== undefined);
    let untilMs: number | undefined;
    for (let tries = 0; ; tries += 1) {
      let failure: EvregError | undefined;
      try {
        const result = await publish(items, how);
        // Some items can fail by the store while others are stored; with keys all of them can be sent again.
        failure = isKeyed ? storeFailure(result) : undefined;
        if (failure === undefined) {
          wasThere = true;
          isLogged = false;
          return result;
        }
      } catch (error) {
        if (!(error instanceof EvregError)) throw error;
        failure = error;
      }
      wasThere ||= failure.code !== "unreachable";
      untilMs ??= nowMs() + RETRY_WINDOW_MS;
      const waitMs = Math.max(failure.retryAfterMs ?? 0, Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** tries));
      const isSafe = wasThere && (isKeyed || isCertain(failure));
      if (!isPassing(failure) || !isSafe || nowMs() + waitMs > untilMs || signal.aborted) throw failure;
      if (!isLogged) {
        log(`${escapeControl(failure.message)} Trying again for ${RETRY_WINDOW_MS / 60_000} minutes.`);
      }
      isLogged = true;
      await sleep(waitMs).catch(() => {
        throw failure;
      });
    }
  };
}

function storeFailure({ errors }: BatchResult): EvregError | undefined {
  const first = errors.find(({ code }) => code === HTTP_STATUS.unavailable);
  if (first === undefined) return undefined;
  return Object.assign(new EvregError("unavailable", first.error, first.details), {
    retryAfterMs: FIRST_WAIT_MS,
  });
}

/** There was no connection yet, so nothing was sent. */
const NEVER_SENT = new Set<unknown>([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

/** Whether a failure means that nothing was stored, as a refusal of the whole batch does. */
export function isCertain(failure: unknown): boolean {
  if (!(failure instanceof EvregError)) return false;
  if (failure.code === "unreachable") return NEVER_SENT.has(failure.details["cause"]);
  if (failure.code === "unavailable") return failure.details["stored"] === false;
  return failure.code !== "internal";
}
