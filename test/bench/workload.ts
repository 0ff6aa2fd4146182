// What is published everywhere here: an order of about 200 bytes and a schema as people write them.

export const SCHEMA = {
  type: "object",
  required: ["id", "customer", "currency", "total", "placed_at", "items"],
  properties: {
    id: { type: "string", pattern: "^A-[0-9]{8}$" },
    customer: {
      type: "object",
      required: ["id", "email"],
      properties: { id: { type: "integer", minimum: 1 }, email: { type: "string", format: "email" } },
    },
    currency: { type: "string", enum: ["EUR", "USD", "GBP", "CHF"] },
    total: { type: "number", minimum: 0 },
    placed_at: { type: "string", format: "date-time" },
    items: {
      type: "array",
      minItems: 1,
      maxItems: 100,
      items: {
        type: "object",
        required: ["sku", "quantity"],
        properties: {
          sku: { type: "string", minLength: 1, maxLength: 64 },
          quantity: { type: "integer", minimum: 1 },
        },
      },
    },
  },
};

export const ID_MARK = "########";

/** A request to send many times: a `POST` with a body. Each mark in that is replaced by a number of its own, of eight digits. */
export interface RequestSpec {
  readonly path: string;
  readonly body?: string;
}

/** With a mark for the number that the load puts in. */
export const PAYLOAD =
  `{"id":"A-${ID_MARK}","customer":{"id":48213,"email":"jo.doe@example.com"},"currency":"EUR",` +
  `"total":129.95,"placed_at":"2026-03-14T09:26:53Z",` +
  `"items":[{"sku":"chair-7","quantity":2},{"sku":"lamp-3","quantity":1}]}`;

/** A payload with a number of its own. */
export function payloadOf(number: number): string {
  return PAYLOAD.replace(ID_MARK, String(number).padStart(ID_MARK.length, "0"));
}

/** Its only subscription is paused, so nothing is delivered. */
export const PAUSED_ACTION = "order.created";
/** Its only subscription is active and has a fast handler. */
export const DELIVERED_ACTION = "order.shipped";

/** Filled into folders by the scenarios that need waiting deliveries. */
export const WAITING_ACTION = "parcel.sent";

export const BATCH_ITEMS = 500;

function eventBody(action: string): string {
  return `{"action":"${action}","payload":${PAYLOAD}}`;
}

/** Publishes one event. */
export function publishOf(action: string): RequestSpec {
  return { path: "/v1/events", body: eventBody(action) };
}

/** Publishes a batch. */
export function batchOf(action: string): RequestSpec {
  const items = Array.from({ length: BATCH_ITEMS }, () => eventBody(action));
  return { path: "/v1/events/batch", body: `{"events":[${items.join(",")}]}` };
}
