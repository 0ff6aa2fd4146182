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
      page: field.ordinal,
      per_page: field.ordinal,
      damaged: about(
        { type: "array", items: field.rowid },
        "Events of this page that are damaged in the data file: their payloads are `null`, and they are not sent. Absent if there are none.",
      ),
      searched: about(field.count, "Of a search: how many events were looked at for this list."),
      next: about(field.nullableRowid, "Of a search: the `after` with which it goes on; `null` at its end."),
      warnings: about(listOf("SchemaWarning"), "With `where`: what in it is probably a slip."),
    },
    ["damaged", "searched", "next", "warnings"],
  ),
  deprecated: record({ deprecated }),
  batch: record(
    {
      accepted: field.count,
      rejected: field.count,
      replayed: about(field.count, "Of those accepted, whose idempotency key stands for an event before."),
      deprecated,
    },
    ["deprecated"],
  ),
  warnings: record({ warnings: listOf("SchemaWarning") }),
  rotated: record({ rotated: about(field.count, "How many subscriptions have the new secret.") }),
  consumers: record({ consumers: about(field.count, "How many consumers wait for its deliveries now.") }),
  cancelled: record({ cancelled: about(field.count, "How many waiting deliveries were cancelled.") }),
  nodes: record({ shards: about(field.count, "In so many parts the subscriptions are shared out.") }),
  findings: record({ time: field.timestamp }),
  attention: record({
    total: about(field.count, "Of all there are."),
    subscriptions: about(field.count, "How many subscriptions they are of: one may have two entries."),
  }),
} as const;
