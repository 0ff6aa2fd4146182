import type { Delivery } from "../domain/delivery.ts";
import { EvregError } from "../domain/error.ts";
import type { BatchItemError, BatchResult, Event, NewEvent, PageMeta } from "../domain/event.ts";
import type { Answer, EventsPort } from "../evreg.ts";
import { encodeJson } from "../json/encode.ts";
import { batchBody } from "./batch-body.ts";
import { eventAnswer, eventsAnswer, jsonAnswer } from "./answers.ts";
import type { Channel, Received } from "./channel.ts";
import { deprecationIn } from "./deprecation.ts";
import { foreignAnswer, refusal } from "./refusals.ts";

const PATH = "/v1/events";
const MINIMAL = "return=minimal" as const;

export function eventsOver(channel: Channel): EventsPort {
  return {
    async publish(input) {
      const received = await channel.send("POST", PATH, { body: encodeJson(input) });
      const replayed = received.headers["idempotency-replayed"] === "true";
      const deprecation = deprecationIn(received, input.action);
      const answer = { ...eventAnswer(received), replayed };
      return deprecation === undefined ? answer : { ...answer, deprecation };
    },
    async publishBatch(items, { minimal, ...query } = {}) {
      const prefer = minimal === true ? MINIMAL : undefined;
      const sent = { body: batchBody(items), query, prefer, also: [422] };
      const result = batchResult(await channel.send("POST", `${PATH}/batch`, sent), items);
      // A server may pass a preference over.
      return minimal === true ? { ...result, data: [] } : result;
    },
    async list(query = {}) {
      const received = await channel.send("GET", PATH, { query: { ...query } });
      const { data, rest } = eventsAnswer(received);
      return { data: data as readonly Event[], meta: rest["meta"] as PageMeta };
    },
    async get(id) {
      return eventAnswer(await channel.send("GET", `${PATH}/${id}`));
    },
    async deliveries(id) {
      return jsonAnswer(await channel.send("GET", `${PATH}/${id}/deliveries`)) as Answer<readonly Delivery[]>;
    },
  };
}

function batchResult(received: Received, items: readonly (NewEvent | EvregError)[]): BatchResult {
  const { data, rest } = batchParts(received);
  const errors = (rest["errors"] as readonly BatchItemError[]).map((error) => {
    const item = items[error.index];
    return item instanceof EvregError ? itemError(error.index, item) : error;
  });
  return { data, errors, meta: rest["meta"] as BatchResult["meta"] };
}

function itemError(index: number, error: EvregError): BatchItemError {
  return { index, ...error.body() };
}

/** 422 is a batch of which nothing was accepted, or no batch at all: only the first says what became of each item. */
function batchParts(received: Received): ReturnType<typeof eventsAnswer> {
  let parts: ReturnType<typeof eventsAnswer>;
  try {
    // Without events the common way is the faster one.
    const isMinimal = received.headers["preference-applied"] === MINIMAL;
    parts = isMinimal ? minimalAnswer(received) : eventsAnswer(received);
  } catch (error) {
    throw refusal(received) ?? error;
  }
  if (!Array.isArray(parts.rest["errors"])) throw foreignAnswer(received);
  return parts;
}

function minimalAnswer(received: Received): ReturnType<typeof eventsAnswer> {
  const { data: _, ...rest } = jsonAnswer(received);
  return { data: [], rest };
}
