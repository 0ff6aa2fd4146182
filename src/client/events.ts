import { EvregError } from "../domain/error.ts";
import type { BatchItemError, BatchResult, Event, NewEvent, PageMeta } from "../domain/event.ts";
import type { BatchItem } from "../domain/publish-body.ts";
import type { EventsPort } from "../evreg.ts";
import { encodeJson, joinPieces, RawJson } from "../json/raw-json.ts";
import { eventAnswer, eventsAnswer } from "./answers.ts";
import { type Channel, foreignAnswer, type Received, refusal } from "./channel.ts";

const PATH = "/v1/events";

export function eventsOver(channel: Channel): Omit<EventsPort, "deliveries"> {
  return {
    async publish(input) {
      const received = await channel.send("POST", PATH, { body: encodeJson(input) });
      const replayed = received.headers["idempotency-replayed"] === "true";
      return { ...eventAnswer(received), replayed };
    },
    async publishBatch(items, query = {}) {
      const body = batchBody(items);
      const received = await channel.send("POST", `${PATH}/batch`, {
        body,
        query: { ...query },
        also: [422],
      });
      // The server has it. V8 frees it late, and a bulk would hold hundreds of them.
      body.buffer.transfer(0);
      return batchResult(received, items);
    },
    async list(query = {}, signal) {
      const received = await channel.send("GET", PATH, { query: { ...query }, signal });
      const { data, rest } = eventsAnswer(received);
      return { data: data as readonly Event[], meta: rest["meta"] as PageMeta };
    },
    async get(id) {
      const { data } = eventAnswer(await channel.send("GET", `${PATH}/${id}`));
      return { data };
    },
  };
}

/** 422 is a batch of which nothing was accepted, or no batch at all: only the first says what became of each item. */
function batchResult(received: Received, items: readonly BatchItem[]): BatchResult {
  let answer: ReturnType<typeof eventsAnswer>;
  try {
    answer = eventsAnswer(received);
  } catch (error) {
    throw refusal(received) ?? error;
  }
  const { data, rest } = answer;
  if (!Array.isArray(rest["errors"])) throw foreignAnswer(received);
  const errors = (rest["errors"] as readonly BatchItemError[]).map((error) => {
    // Why an item could not be read is known here; the server got `null` in its place.
    const item = items[error.index];
    return item instanceof EvregError ? Object.assign({ index: error.index }, item.body()) : error;
  });
  return { data, errors, meta: rest["meta"] as BatchResult["meta"] };
}

/**
 * The body of a batch, put together as bytes: as a string each payload would be decoded and encoded again, which took a
 * quarter of a bulk's time.
 *
 * An item that could not even be read goes as `null`, which the server refuses in its place: so the others keep their
 * numbers, and an atomic batch fails as it must.
 */
export function batchBody(items: readonly BatchItem[]): Uint8Array<ArrayBuffer> {
  const pieces = items.flatMap((item, place) => [place === 0 ? "" : ",", ...piecesOf(item)]);
  return joinPieces(['{"events":[', ...pieces, "]}"]);
}

function piecesOf(item: BatchItem): readonly (string | Uint8Array)[] {
  if (item instanceof EvregError) return ["null"];
  if (!isPlain(item)) return [encodeJson(item)];
  const { action, payload, idempotency_key: key } = item;
  const tail = key === undefined ? "}" : `,"idempotency_key":${JSON.stringify(key)}}`;
  return [`{"action":${JSON.stringify(action)},"payload":`, payload.bytes, tail];
}

/** What no type allows is for the server to refuse, so it must get there as it is. */
function isPlain(item: unknown): item is NewEvent {
  if (typeof item !== "object" || item === null) return false;
  const { action, payload, idempotency_key: key } = item as Partial<NewEvent>;
  const members = key === undefined ? 2 : 3;
  return typeof action === "string" && payload instanceof RawJson && Object.keys(item).length === members;
}
