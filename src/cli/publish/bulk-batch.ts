import { type ErrorBody, EvregError, HTTP_STATUS } from "../../domain/error.ts";
import { type BatchOptions, type BatchResult, type Event, EVENT_LIMITS } from "../../domain/event.ts";
import { type BatchItem, EventLine } from "../../domain/publish-body.ts";
import { escapeControl } from "../io/text.ts";
import type { Line } from "./bulk-input.ts";

/** The longest line that still fits into the body of a batch by itself. */
export const MAX_LINE_BYTES = EVENT_LIMITS.batchBytes - 1_024;

/** A line with the event on it, or why it has none; the latter is sent as well, so that all are refused in their order. */
export interface BatchEntry {
  readonly line: Line;
  readonly item: BatchItem;
}

export type PublishItems = (items: readonly BatchItem[], options: BatchOptions) => Promise<BatchResult>;

/** What became of the lines of one batch, in their order. */
export interface BatchOutcome {
  readonly accepted: number;
  /** The accepted ones; none when they were not requested. */
  readonly events: readonly Event[];
  /** Of the accepted, those whose idempotency key stands for an older event. */
  readonly replayed: number;
  readonly refused: readonly { readonly line: Line; readonly error: ErrorBody }[];
}

/**
 * The event on a line, or why it is none. How large a payload may be is for the target to say.
 * @param keyOf the idempotency key of a line that names none
 */
export function itemOn(line: Line, keyOf?: (line: Line) => string): BatchItem {
  if (line.bytes === undefined) {
    const maxBytes = MAX_LINE_BYTES.toLocaleString("en");
    return new EvregError(
      "too_large",
      `The line is longer than ${maxBytes} bytes, more than an event can have. Is there a line break after each event?`,
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

export function itemsOf(batch: readonly BatchEntry[]): BatchItem[] {
  return batch.map(({ item }) => item);
}

export function batchOutcome(batch: readonly BatchEntry[], result: BatchResult): BatchOutcome {
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
export async function publishEntries(
  batch: readonly BatchEntry[],
  publish: PublishItems,
  { onError, minimal }: { readonly onError: "stop" | "continue"; readonly minimal: boolean },
): Promise<BatchOutcome> {
  if (onError === "continue") return batchOutcome(batch, await publish(itemsOf(batch), { minimal }));
  let rest = batch;
  let refused: BatchOutcome["refused"] = [];
  while (rest.length > 0) {
    const settled = batchOutcome(rest, await publish(itemsOf(rest), { atomic: true, minimal }));
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

/** For how long one request is retried. With a checkpoint an end loses nothing, and a person who watches wants to know. */
const RETRY_WINDOW_MS = 120_000;
const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 5_000;

interface RetryOptions {
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  /** Rejects when the signal aborts. */
  readonly sleep: (delayMs: number, signal: AbortSignal) => Promise<void>;
  readonly log: (line: string) => void;
}

/**
 * Publishes again what a target could not take or did not answer, for two minutes at most: after 250 ms, then doubling up
 * to 5 s, or when `Retry-After` says. What may have been stored all the same is sent again only where every item has an
 * idempotency key; and a server that never answered is probably the wrong one, so that fails at once.
 */
export function withRetry(publish: PublishItems, options: RetryOptions): PublishItems {
  const { signal, nowMs, sleep, log } = options;
  let wasThere = false;
  let isLogged = false;
  return async (items, how) => {
    const isKeyed = items.every((item) => item instanceof EvregError || item.idempotency_key !== undefined);
    let untilMs: number | undefined;
    for (let tries = 0; ; tries += 1) {
      let failure: unknown;
      try {
        const result = await publish(items, how);
        wasThere = true;
        failure = isKeyed ? storeFailure(result) : undefined;
        if (failure === undefined) {
          isLogged = false;
          return result;
        }
      } catch (error) {
        failure = error;
      }
      wasThere ||= hasAnswered(failure);
      untilMs ??= nowMs() + RETRY_WINDOW_MS;
      const waitMs = Math.max(retryAfterMs(failure), Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** tries));
      const isSafe = wasThere && (isKeyed || isCertain(failure));
      if (!isTransient(failure) || !isSafe || nowMs() + waitMs > untilMs || signal.aborted) throw failure;
      if (!isLogged) log(`${reason(failure)} Trying again for ${RETRY_WINDOW_MS / 60_000} minutes.`);
      isLogged = true;
      try {
        await sleep(waitMs, signal);
      } catch {
        throw failure;
      }
    }
  };
}

/** Without the advice for those who do not try again by themselves. */
function reason({ code, message, details }: EvregError): string {
  if (code !== "unreachable") return escapeControl(message);
  const { cause, status } = details;
  if (typeof cause !== "string") return `The server did not answer (${String(status)}).`;
  if (cause === "ECONNREFUSED") return "The server is not there any more (connection refused).";
  const isBroken = cause === "UND_ERR_SOCKET" || cause === "ECONNRESET" || cause === "EPIPE";
  return isBroken ? "The connection to the server broke." : `The server did not answer (${cause}).`;
}

/** Some items of a batch can fail by the store while others are stored; with keys the whole of it can go again. */
function storeFailure({ errors }: BatchResult): EvregError | undefined {
  const first = errors.find(({ code }) => code === HTTP_STATUS.unavailable);
  return first === undefined ? undefined : new EvregError("unavailable", first.error, first.details);
}

/** Before a connection stands nothing was sent. */
const NEVER_SENT = new Set<unknown>([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);
const NEVER_CONNECTED = new Set<unknown>([...NEVER_SENT, "UND_ERR_CONNECT_TIMEOUT", "ETIMEDOUT"]);
const CONNECTION_BROKEN = new Set<unknown>(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET", "TimeoutError"]);
/** Of a proxy before a server that is away. */
const GATEWAY_STATUSES = new Set<unknown>([429, 502, 503, 504]);

function isTransient(failure: unknown): failure is EvregError {
  if (!(failure instanceof EvregError)) return false;
  const { code, details } = failure;
  if (code === "rate_limited" || code === "unavailable") return true;
  const { cause, status } = details;
  const hasNoAnswer =
    NEVER_CONNECTED.has(cause) || CONNECTION_BROKEN.has(cause) || GATEWAY_STATUSES.has(status);
  return code === "unreachable" && hasNoAnswer;
}

function hasAnswered(failure: unknown): boolean {
  if (!(failure instanceof EvregError)) return false;
  return failure.code !== "unreachable" || !NEVER_CONNECTED.has(failure.details["cause"]);
}

/** Whether a failure says that nothing was stored. A refusal of the whole batch does. */
export function isCertain(failure: unknown): boolean {
  if (!(failure instanceof EvregError)) return false;
  if (failure.code === "unreachable") return NEVER_SENT.has(failure.details["cause"]);
  return failure.code !== "unavailable" && failure.code !== "internal";
}

function retryAfterMs(failure: unknown): number {
  return failure instanceof EvregError ? (failure.retryAfterMs ?? 0) : 0;
}
