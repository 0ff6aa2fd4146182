import type { ACTION_ANSWERS } from "./action-answers.ts";
import { about, field, record } from "./field.ts";

/** A list of what is named, by its name in the document and of its type. */
function listOf<N extends keyof typeof ACTION_ANSWERS>(name: N) {
  const items = { $ref: `#/components/schemas/${name}` } as unknown as (typeof ACTION_ANSWERS)[N];
  return { type: "array", items } as const;
}

const deprecated = about(
  listOf("Deprecation"),
  "Deprecated actions among those of the accepted events; absent if there are none.",
);

/** What answers have beside their data. */
export const META = {
  page: record(
    {
      total: field.count,
      page: { type: "integer", minimum: 1 },
      per_page: { type: "integer", minimum: 1 },
      damaged: {
        type: "array",
        items: field.rowid,
        description:
          "Events of this page that are damaged in the data file: their payloads are `null`, and they are not sent. Absent if there are none.",
      },
      searched: about(field.count, "Of a search: how many events were looked at for this list."),
      next: {
        type: ["integer", "null"],
        description:
          "Of a search: the `after` with which the search goes on; `null` where all were looked at.",
      },
      warnings: about(listOf("SchemaWarning"), "With `where`: what in it is probably a slip."),
    },
    ["damaged", "searched", "next", "warnings"],
  ),
  deprecated: record({ deprecated }),
  batch: record(
    {
      accepted: field.count,
      rejected: field.count,
      replayed: about(
        field.count,
        "Accepted items whose idempotency key had been used for the same event before.",
      ),
      deprecated,
    },
    ["deprecated"],
  ),
  warnings: record({ warnings: listOf("SchemaWarning") }),
  rotated: record({
    rotated: about(
      field.count,
      "Number of subscriptions with the new secret: all of this application and name.",
    ),
  }),
  consumers: record({
    consumers: about(field.count, "Number of consumers that wait for its deliveries now."),
  }),
  cancelled: record({
    cancelled: about(
      field.count,
      "Number of waiting deliveries that were cancelled. An attempt under way ends as usual; if it fails, its delivery is cancelled as well.",
    ),
  }),
  nodes: record({
    shards: about(field.count, "In so many parts the subscriptions are shared out."),
    answered_by: about(field.text, "The node that answers."),
  }),
  findings: record({ time: field.timestamp }),
  attention: record({
    total: about(field.count, "Of all there are."),
    subscriptions: about(field.count, "How many subscriptions they are of: one may have two entries."),
    time: field.timestamp,
  }),
} as const;
