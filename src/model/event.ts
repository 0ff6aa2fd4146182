import { DELIVERY_STATUSES } from "./delivery.ts";
import { field, type Fields } from "./field.ts";

/** One occurrence of an action. */
export const EVENT = {
  rowid: { answer: field.rowid, title: "Event" },
  action: { answer: field.text, title: "Action" },
  payload: {
    answer: {
      type: ["object", "null"],
      description:
        "Byte for byte as published. `null` only in a list with `payloads=false`, or whose `meta.damaged` names the event.",
      additionalProperties: true,
    },
    title: "Payload",
  },
  revision: { answer: field.ordinal, about: "That the payload was checked by.", title: "Revision" },
  timestamped: { answer: field.timestamp, title: "Published" },
  deliveries: {
    answer: {
      type: "object",
      properties: Object.fromEntries(DELIVERY_STATUSES.map((status) => [status, field.count])),
      additionalProperties: false,
      description:
        "In a list with `deliveries=true`: how many of its deliveries are in each state; states without any are left out.",
    },
  },
} as const satisfies Fields;
