import type { JsonSchema } from "../route.ts";
import { count, failure, record, ref, rowid, text, timestamp } from "./members.ts";

/** Events as they are answered, and the answer to a batch. */
export const EVENT_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Event: record({
    rowid,
    action: text,
    payload: {
      type: ["object", "null"],
      description:
        "Exactly as published, byte for byte. `null` only in a listing whose `meta.damaged` names the event.",
      additionalProperties: true,
    },
    revision: {
      type: "integer",
      minimum: 1,
      description: "The schema revision the payload was validated against.",
    },
    timestamped: timestamp,
  }),
  PageMeta: record(
    {
      total: count,
      page: { type: "integer", minimum: 1 },
      per_page: { type: "integer", minimum: 1 },
      damaged: {
        type: "array",
        items: rowid,
        description:
          "Events of this page that are damaged in the data file: their payloads are `null`, and they are not sent. Absent when there is none.",
      },
    },
    ["damaged"],
  ),
  BatchItemError: record({ index: { ...count, description: "Place in the batch, from 0." }, ...failure }),
};

/** The answer to a batch; with `failed`, also the members that every failure has. */
export function batch(failed: boolean): JsonSchema {
  return record({
    data: {
      type: "array",
      items: { oneOf: [ref("Event"), { type: "null" }] },
      description: "In the order sent, `null` where it was refused; empty with `Prefer: return=minimal`.",
    },
    errors: { type: "array", items: ref("BatchItemError") },
    meta: record(
      {
        accepted: count,
        rejected: count,
        replayed: {
          ...count,
          description: "Of the accepted: their idempotency key stands for an event accepted before.",
        },
        deprecated: {
          type: "array",
          items: ref("Deprecation"),
          description: "The deprecated actions of the accepted; absent when there is none.",
        },
      },
      ["deprecated"],
    ),
    ...(failed ? failure : {}),
  });
}
