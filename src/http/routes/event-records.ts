import type { JsonSchema } from "../../domain/request.ts";
import { EVENT } from "../../model/event.ts";
import { field } from "../../model/field.ts";
import { record, recordOf } from "../../model/schemas.ts";
import { failure, ref } from "./route.ts";

/** Events as they are answered, and parts of the answer to a batch. */
export const EVENT_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Event: recordOf(EVENT),
  PageMeta: record(
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
      searched: {
        ...field.count,
        description: "Of a search: how many events were looked at for this list.",
      },
      next: {
        type: ["integer", "null"],
        description:
          "Of a search: the `after` with which the search goes on; `null` where all were looked at.",
      },
      warnings: {
        type: "array",
        items: ref("SchemaWarning"),
        description: "With `where`: what in it is probably a slip.",
      },
    },
    ["damaged", "searched", "next", "warnings"],
  ),
  BatchItemError: record({
    index: { ...field.count, description: "Index in the batch, from 0." },
    ...failure,
  }),
};
