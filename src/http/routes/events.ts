import { invalidField } from "../../domain/error.ts";
import {
  BATCH,
  BATCH_QUERY,
  type BatchOptions,
  type BatchResult,
  type Event,
  EVENT_LIMITS,
  EVENT_QUERY,
  type EventQuery,
  NEW_EVENT,
  type NewEvent,
  SEARCH_LIMITS,
} from "../../domain/event.ts";
import {
  checkIdempotencyKey,
  batchBodySteps,
  parsePublishBody,
  publishBodySteps,
} from "../../domain/publish-body.ts";
import type { Answer } from "../../evreg.ts";
import { EVENT_PART_BYTES, PAGE_BYTES } from "../response-budget.ts";
import { type Chunks, type HeaderPair, joined, type Part, type Reply, replyInParts } from "../response.ts";
import { eventLoop } from "../../runtime/yielding.ts";
import type { EventPart } from "../../service/events.ts";
import type { JsonSchema } from "../../domain/request.ts";
import { record } from "../../model/field.ts";
import { META } from "../../model/meta.ts";
import {
  BESIDE_PAYLOAD_BYTES,
  failure,
  type HttpConfig,
  many,
  one,
  operation,
  ref,
  routeAt,
  type Route,
} from "./route.ts";

/** @param failed with the members that every failure has */
function batch(failed: boolean): JsonSchema {
  return record({
    data: {
      type: "array",
      items: { oneOf: [ref("Event"), { type: "null" }] },
      description: "In the order sent, `null` for a refused item; empty with `minimal`.",
    },
    errors: { type: "array", items: ref("BatchItemError") },
    meta: META.batch,
    ...(failed ? failure : {}),
  });
}

const PUBLISHED: JsonSchema = one("Event", META.deprecated);

/** Larger bodies are read in steps: this many bytes take two milliseconds. */
const LONG_BODY_BYTES = 64 * 1024;

/** The body of a publish; at once where that takes a moment only. */
export function eventBodyOf(bytes: Uint8Array, limits: HttpConfig["limits"]): NewEvent | Promise<NewEvent> {
  if (bytes.length <= LONG_BODY_BYTES) return parsePublishBody(bytes, limits);
  return eventLoop.run(publishBodySteps(bytes, limits));
}

const KEY_HEADER = "idempotency-key";
const REPLAYED: HeaderPair = ["idempotency-replayed", "true"];

export const EVENT_ROUTES: readonly Route[] = [
  routeAt("POST /v1/events", "publishEvent", "Publish an event", {
    description:
      "The answer comes once the event and its deliveries are durable. An idempotency key belongs to the application of the action. It is valid as long as its event is stored: forever, or for `retention.events` of the configuration.",
    access: "publish",
    scope: "publish",
    headers: { "Idempotency-Key": NEW_EVENT.properties.idempotency_key },
    body: NEW_EVENT,
    answers: {
      201: { description: "The event.", schema: PUBLISHED },
      200: {
        description: "The event that was published before under the same key; nothing was stored.",
        schema: PUBLISHED,
        headers: { "Idempotency-Replayed": { type: "string", enum: ["true"] } },
      },
    },
    failures: [404, 409, 410],
    async handle(evreg, request, { config: { limits } }) {
      const bytes = await request.body(limits.payloadBytes + BESIDE_PAYLOAD_BYTES);
      const parsed = eventBodyOf(bytes, limits);
      const body = parsed instanceof Promise ? await parsed : parsed;
      const input = withKey(body, request.header(KEY_HEADER));
      const { replayed, ...answer } = await evreg.events.publish(input);
      return replayed ? { ...eventReply(200, answer), headers: [REPLAYED] } : eventReply(201, answer);
    },
  }),
  routeAt("POST /v1/events/batch", "publishBatch", "Publish up to 1,000 events", {
    description: "Accepts the valid items and reports the others; with `atomic`, accepts all or none.",
    access: "publish",
    scope: "publish",
    query: BATCH_QUERY,
    body: BATCH,
    answers: {
      201: { description: "All items were accepted.", schema: batch(false) },
      207: { description: "Some items were accepted.", schema: batch(false) },
      422: {
        description: "No item was accepted, or the body is not a batch.",
        schema: { oneOf: [batch(true), ref("Error")] },
      },
    },
    failures: [409],
    async handle(evreg, request, { config: { limits }, counts }) {
      const options = request.query as BatchOptions;
      const bytes = await request.body(EVENT_LIMITS.batchBytes);
      const items = await eventLoop.run(batchBodySteps(bytes, limits));
      const result = await request.untilDisconnect((signal) =>
        evreg.events.publishBatch(items, options, signal),
      );
      counts.countRefusedItems(result);
      if (eventLoop.shouldYield()) await eventLoop.yield();
      // The accepted events are no larger than the body, whose memory is reserved, and a refusal has a few hundred bytes.
      return batchReply(result);
    },
  }),
  routeAt("GET /v1/events", "listEvents", "List events, newest first by default", {
    description:
      "Use `after` to read long lists: each page costs the same. It replaces `page`. A search by `where` goes on with `meta.next`, also where it found nothing yet.",
    query: EVENT_QUERY,
    answers: { 200: { description: "One page of events.", schema: many("Event", ref("PageMeta")) } },
    failures: [422],
    async handle(evreg, request, { config: { limits }, responses }) {
      const query = request.query as EventQuery;
      const listBytes =
        query.payloads === false
          ? PAGE_BYTES
          : (query.limit ?? EVENT_LIMITS.listDefault) * limits.payloadBytes;
      // A part ends before the event that would be too much for it, and a single one may have more.
      const partBytes = Math.min(listBytes, Math.max(EVENT_PART_BYTES, limits.payloadBytes) + PAGE_BYTES);
      // A search holds what it reads, what it has found, and one more.
      const searchBytes = 2 * SEARCH_LIMITS.bytes + limits.payloadBytes;
      // A search reads payloads also where it answers none.
      const mostBytes = Math.max(listBytes, SEARCH_LIMITS.bytes);
      return request.untilDisconnect((signal) => {
        const reading = { signal, maxBytes: EVENT_PART_BYTES };
        const make = (): Promise<Reply> => replyInParts(eventListParts(evreg.parts.events(query, reading)));
        return query.where !== undefined
          ? responses.answer(request, Math.min(mostBytes, searchBytes), make, "search")
          : responses.answer(request, partBytes, make);
      });
    },
  }),
  routeAt("GET /v1/events/:id", "getEvent", "Get one event", {
    answers: { 200: { description: "The event.", schema: one("Event") } },
    async handle(evreg, request, { config: { limits }, responses }) {
      const id = request.id();
      return responses.answer(request, limits.payloadBytes, async () => {
        return eventReply(200, await evreg.events.get(id));
      });
    },
  }),
  operation("events.deliveries", "listEventDeliveries", "List the deliveries of one event", {
    answer: ["The deliveries.", many("Delivery")],
    run: ({ parts }, { id }) => parts.eventDeliveries(id),
  }),
];

/** The key may be in the header or in the body; in both it must be the same. */
function withKey(input: NewEvent, header: string | undefined): NewEvent {
  if (header === undefined) return input;
  const key = checkIdempotencyKey("Idempotency-Key", header);
  if (input.idempotency_key !== undefined && input.idempotency_key !== key) {
    throw invalidField("idempotency_key", "differs from the Idempotency-Key header", input.idempotency_key);
  }
  return { ...input, idempotency_key: key };
}

/**
 * Above this many payload bytes an answer is put together as bytes: a string of it would be written twice over, and past
 * 512 MiB could not exist at all. Below, a string goes out in one write with the headers.
 */
const STRING_MAX_BYTES = 16 * 1024;

/** The members that `head` and `tail` write. A member added to `Event` makes this line fail to compile. */
const WRITTEN: Record<keyof Event, true> = {
  deliveries: true,
  rowid: true,
  action: true,
  payload: true,
  revision: true,
  timestamped: true,
};
void WRITTEN;

function head({ rowid, action }: Event): string {
  return `{"rowid":${rowid},"action":${JSON.stringify(action)},"payload":`;
}

function tail(event: Event): string {
  const { revision, timestamped, deliveries } = event;
  const counts = deliveries === undefined ? "" : `,"deliveries":${JSON.stringify(deliveries)}`;
  return `,"revision":${revision},"timestamped":"${timestamped}"${counts}}`;
}

/** `{ data: Event, meta? }`, the payload's bytes as they came. */
function eventReply(status: number, { data, meta }: Answer<Event, object | undefined>): Reply {
  const end = meta === undefined ? "}" : `,"meta":${JSON.stringify(meta)}}`;
  return { status, body: write('{"data":', [data], end) };
}

/** `{ data: [...], meta }` of one page of events. */
async function* eventListParts(pages: AsyncIterable<EventPart>): AsyncGenerator<Part, void, void> {
  let start = '{"data":[';
  let comma = "";
  for await (const { data, meta, isLast } of pages) {
    const end = isLast ? `],"meta":${JSON.stringify(meta)}}` : "";
    yield { body: write(start, data, end, comma), isLast };
    start = "";
    if (data.length > 0) comma = ",";
  }
}

/** 201 when all were accepted, 207 for some, 422 for none; that last one is a failure and has a failure's members too. */
function batchReply({ data, errors, meta }: BatchResult): Reply {
  const status = meta.rejected === 0 ? 201 : meta.accepted === 0 ? 422 : 207;
  const refusal =
    status === 422 ? { error: noneAccepted(errors.length), details: { ...meta }, code: 422 } : {};
  const rest = JSON.stringify({ errors, meta, ...refusal });
  return { status, body: write('{"data":[', data, `],${rest.slice(1)}`) };
}

function noneAccepted(count: number): string {
  return `None of the events was stored; \`errors\` says of ${count === 1 ? "one" : count} what is wrong.`;
}

/** @param comma what comes before the first event */
function write(start: string, events: readonly (Event | null)[], end: string, comma = ""): string | Chunks {
  let payloadBytes = 0;
  for (const event of events) payloadBytes += event?.payload.bytes.length ?? 0;
  const isSmall = payloadBytes <= STRING_MAX_BYTES;
  const pieces: (string | Uint8Array)[] = [];
  let text = start;
  for (const event of events) {
    text += comma;
    comma = ",";
    if (event === null) text += "null";
    else if (isSmall) text += head(event) + event.payload.text() + tail(event);
    else {
      pieces.push(text + head(event), event.payload.bytes);
      text = tail(event);
    }
  }
  return isSmall ? text + end : joined([...pieces, text + end]);
}
