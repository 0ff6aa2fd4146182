import type { Delivery } from "../domain/delivery.ts";
import { EvregError } from "../domain/error.ts";
import { EventLine, readItem, type BatchItem } from "../domain/event-line.ts";
import type { BatchItemError, BatchResult, Event, NewEvent, PageMeta } from "../domain/event.ts";
import type { Answer, EventsPort } from "../evreg.ts";
import { encodeJson } from "../json/encode.ts";
import { batchBody } from "./batch-body.ts";
import { eventAnswer, eventsAnswer, listAnswer, parsedAnswer } from "./answers.ts";
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
      const send = (some: readonly BatchItem[]): Promise<Received> =>
        channel.send("POST", `${PATH}/batch`, { body: batchBody(some), query, prefer, also: [422] });
      const received = await send(items).catch((error: unknown) => {
        if (!isMalformed(error) || !items.some((item) => item instanceof EventLine)) throw error;
        // Some line is not JSON, and the others are to be taken without it.
        return send(items.map(readItem));
      });
      const result = batchResult(received, items);
      // A server may pass a preference over.
      return minimal === true ? { ...result, data: [] } : result;
    },
    async list(query = {}) {
      const received = await channel.send("GET", PATH, { query: { ...query } });
      const { data, rest } = eventsAnswer(received);
      if (data.length === 0) await channel.mustBeEvreg(received);
      return { data: data as readonly Event[], meta: rest["meta"] as PageMeta };
    },
    async get(id) {
      return eventAnswer(await channel.send("GET", `${PATH}/${id}`));
    },
    async deliveries(id) {
      const received = await channel.send("GET", `${PATH}/${id}/deliveries`);
      return (await listAnswer(received, channel)) as Answer<readonly Delivery[]>;
    },
  };
}

function isMalformed(error: unknown): boolean {
  return error instanceof EvregError && error.code === "malformed";
}

function batchResult(received: Received, items: readonly BatchItem[]): BatchResult {
  const { data, rest } = batchParts(received);
  const errors = (rest["errors"] as readonly BatchItemError[]).map((error) => {
    const item = itemAt(items, error.index);
    return item instanceof EvregError ? itemError(error.index, item) : error;
  });
  return { data, errors, meta: rest["meta"] as BatchResult["meta"] };
}

/** Of a line that was refused the reason is looked for here first: the server tells places within the batch. */
function itemAt(items: readonly BatchItem[], index: number): NewEvent | EvregError | undefined {
  const item = items[index];
  return item === undefined ? undefined : readItem(item);
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
  const { data: _, ...rest } = parsedAnswer(received);
  return { data: [], rest };
}
