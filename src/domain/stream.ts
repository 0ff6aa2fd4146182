import type { RawJson } from "../json/raw-json.ts";
import type { Attempt, Delivery, DeliveryStatus } from "./delivery.ts";
import { DELIVERY_STATUSES } from "../model/delivery.ts";
import type { Event } from "./event.ts";
import { parseDurationMs, parseIsoTime } from "./formats.ts";
import {
  byAction,
  byApplication,
  inputSchema,
  malformedField,
  NO_NUL,
  rowid,
  type ValueOf,
} from "./request.ts";

const STREAM_TOPICS = ["events", "deliveries"] as const;
export type StreamTopic = (typeof STREAM_TOPICS)[number];

/** An event as a stream shows it. */
export interface StreamedEvent extends Omit<Event, "payload" | "deliveries"> {
  readonly application: string;
  /** Byte for byte as published; `null` if it is damaged. Absent unless payloads were asked for. */
  readonly payload?: RawJson;
}

/** What became of one attempt, or of a delivery that ended without one. */
export interface DeliveryResult
  extends
    Omit<Delivery, "next_attempt_at" | "last_error" | "finished_at">,
    Pick<Attempt, "status_code" | "error_code"> {
  /** The state after the attempt: `waiting` if it is sent again later, `pending` if at once. */
  readonly status: DeliveryStatus;
  /** `null` if nothing was sent. */
  readonly duration_ms: number | null;
  /** ISO 8601 UTC: when its result was stored. */
  readonly timestamped: string;
}

/** Something that a reader should know of its stream. */
export interface StreamGap {
  /**
   * `overrun`: more happened than is kept. `restart`: the server has started since. `expired`: retention has removed events
   * after the place where the stream goes on. `other_data`: the id is of other data, or from before a restore.
   */
  readonly reason: "overrun" | "restart" | "expired" | "other_data";
  /** The topics that it is about. */
  readonly topics: readonly StreamTopic[];
  /** At most so many results of deliveries did not come; `null` if nobody knows. */
  readonly missed: number | null;
  /** ISO 8601 UTC: all results since then follow. `null` if that is not known. */
  readonly complete_since: string | null;
}

interface Message<T extends string, D> {
  readonly type: T;
  /** Where the stream goes on after this message, as `since` or `Last-Event-ID`. */
  readonly id: string;
  readonly data: D;
}

/** `ready`: all that happened before has come, and what happens from now on comes at once. */
export type StreamMessage =
  | Message<"event", StreamedEvent>
  | Message<"delivery", DeliveryResult>
  | Message<"ready", Readonly<Record<string, never>>>
  | Message<"gap", StreamGap>;

export const STREAM_LIMITS = {
  /** Streams open at once. */
  streams: 200,
  /** Results of deliveries that are kept. */
  results: 10_000,
} as const;

const SINCE_LENGTH = 64;

/** What a request's query may say; `topics` are separated by commas there. */
export const STREAM_QUERY = inputSchema("StreamQuery", {
  topics: {
    type: "string",
    minLength: 1,
    maxLength: 100,
    pattern: NO_NUL,
    default: "events",
    description: `One or more of ${STREAM_TOPICS.join(", ")}, separated by commas.`,
    examples: ["events,deliveries"],
  },
  action: byAction,
  application: byApplication,
  subscription: {
    ...rowid,
    description: "Deliveries only of the subscription with this rowid.",
  },
  status: { type: "string", enum: DELIVERY_STATUSES, description: "Deliveries only with this status." },
  payloads: { type: "boolean", default: false, description: "Events with their payloads." },
  since: {
    type: "string",
    minLength: 1,
    maxLength: SINCE_LENGTH,
    pattern: NO_NUL,
    description:
      "Where to begin: the rowid of an event to go on after, an ISO 8601 time, a duration such as `1h`, or the id of a message. By default now.",
    examples: ["1h", "2026-01-31T00:00:00Z", "4711"],
  },
});

/** What a stream shows. It has only events by default, without their payloads, from now on. */
export interface StreamQuery extends Omit<ValueOf<typeof STREAM_QUERY>, "topics"> {
  readonly topics?: readonly StreamTopic[];
}

/** @throws `malformed` for anything but a list of topics, each once */
export function checkTopics(topics: readonly string[]): readonly StreamTopic[] {
  const known = topics.filter((topic): topic is StreamTopic => STREAM_TOPICS.some((one) => one === topic));
  if (known.length > 0 && known.length === topics.length && new Set(known).size === known.length)
    return known;
  const message = `must be one or more of ${STREAM_TOPICS.join(", ")}, each once, separated by commas`;
  throw malformedField("topics", message, topics.join(","));
}

/** How far a stream is. */
export interface StreamPosition {
  /** The last event's rowid; absent in a stream without events. */
  readonly event?: number;
  /** The number of the last result of a delivery, which counts anew with each start of the server. */
  readonly result?: number;
}

export interface StreamCursor extends StreamPosition {
  /** Short forms of what the numbers belong to. */
  readonly data: string;
  readonly instance?: string;
}

/** A stream of batches, whose messages are read one by one as well. Its id is then that of the message that was read last. */
export function streamOfBatches(
  idOf: () => string,
  batches: () => AsyncIterable<readonly StreamMessage[]>,
  close: () => Promise<void>,
) {
  /** There while more of a batch are to come. */
  let idWithin: string | undefined;
  return {
    get id() {
      return idWithin ?? idOf();
    },
    batches,
    close,
    async *[Symbol.asyncIterator](): AsyncGenerator<StreamMessage, void, void> {
      for await (const batch of batches()) {
        for (const message of batch) {
          idWithin = message.id;
          yield message;
        }
        idWithin = undefined;
      }
    },
  };
}

const SHORT_ID = 8;

/** The beginning of an identity, enough to tell two of them apart. */
export function shortId(identity: string): string {
  return identity.replaceAll(/[^0-9a-z]/g, "").slice(0, SHORT_ID) || "0";
}

const CURSOR = /^([0-9a-z]{1,8})_([0-9a-z]{0,11})(?:_([0-9a-z]{1,8})_([0-9a-z]{1,11}))?$/;
const RADIX = 36;

/** The text that `since` and `Last-Event-ID` take. */
export function cursorText({
  data,
  event,
  instance,
  result,
}: { [Member in keyof StreamCursor]: StreamCursor[Member] | undefined }): string {
  const events = `${data}_${event === undefined ? "" : event.toString(RADIX)}`;
  return result === undefined ? events : `${events}_${instance ?? "0"}_${result.toString(RADIX)}`;
}

function parseCursor(text: string): StreamCursor | undefined {
  const [, data, event = "", instance, result] = CURSOR.exec(text) ?? [];
  if (data === undefined) return undefined;
  const cursor = {
    data,
    ...(event === "" ? {} : { event: Number.parseInt(event, RADIX) }),
    ...(result === undefined || instance === undefined
      ? {}
      : { instance, result: Number.parseInt(result, RADIX) }),
  };
  const numbers = [cursor.event ?? 0, "result" in cursor ? cursor.result : 0];
  return numbers.every(Number.isSafeInteger) ? cursor : undefined;
}

export type StreamStart =
  | { readonly kind: "event"; readonly rowid: number }
  | { readonly kind: "time"; readonly ms: number }
  | { readonly kind: "cursor"; readonly cursor: StreamCursor };

/** @throws `malformed` for a text that names no place in a stream */
export function parseSince(text: string, nowMs: number): StreamStart {
  const number = /^\d{1,16}$/.test(text) ? Number(text) : undefined;
  if (number !== undefined && Number.isSafeInteger(number)) return { kind: "event", rowid: number };
  const ms = parseIsoTime(text);
  if (ms !== undefined) return { kind: "time", ms };
  const agoMs = parseDurationMs(text);
  if (agoMs !== undefined && agoMs <= nowMs) return { kind: "time", ms: nowMs - agoMs };
  const cursor = parseCursor(text);
  if (cursor !== undefined) return { kind: "cursor", cursor };
  throw malformedField(
    "since",
    "must be the rowid of an event, an ISO 8601 date and time with its zone, a duration such as 30m, 1h or 2d, or the id of a message of a stream",
    text,
  );
}
