import { ACTION, COMPATIBILITY_MODES } from "./action.ts";
import { about, field, record } from "./field.ts";

/** What answers have of actions beside them: revisions, results of checks, samples. */
export const ACTION_ANSWERS = {
  ActionRevision: record({
    action: field.text,
    revision: field.ordinal,
    schemata: ACTION.schemata.answer,
    compatibility: {
      enum: [...COMPATIBILITY_MODES, null],
      description:
        "In which it was accepted, `none` if it was forced; `null` for the first, and of older files.",
    },
    timestamped: about(field.timestamp, "When it was applied."),
  }),
  SchemaBreak: record(
    {
      side: { type: "string", enum: ["producer", "consumer"], description: "Who breaks." },
      pointer: about(
        field.text,
        "JSON pointer into the new schema, or into the old one for what was removed.",
      ),
      field: about(
        field.text,
        "Where in a payload, as `customer.country` or `lines[0].sku`; empty for the payload itself. An index may stand for those after it.",
      ),
      was: { description: "What the old schema has there; absent if it has nothing." },
      is: { description: "What the new schema has there; absent if it has nothing." },
      change: about(field.text, "What changed: how `message` begins."),
      message: field.text,
      remedy: about(field.text, "What to do instead."),
      certainty: {
        type: "string",
        enum: ["proven", "cannot_prove"],
        description: "`cannot_prove`: it may be harmless, but evreg cannot prove that.",
      },
      example: { description: "A payload that shows the break." },
    },
    ["was", "is", "example"],
  ),
  SchemaVerdict: record({
    compatible: about(field.flag, "Whether an update in that mode would be applied."),
    breaks: { type: "array", items: { $ref: "#/components/schemas/SchemaBreak" } },
    warnings: { type: "array", items: { $ref: "#/components/schemas/SchemaWarning" } },
    replay: {
      oneOf: [{ $ref: "#/components/schemas/CheckedEvents" }, { type: "null" }],
      description: "`null` unless requested.",
    },
  }),
  CheckedEvents: record({
    checked: about(
      field.count,
      "Fewer than requested if there are no more, or if 20 seconds were not enough.",
    ),
    failed: field.count,
    failures: {
      type: "array",
      items: record({ event: field.rowid, field: field.text, message: field.text }),
      description: "The first 100, newest event first.",
    },
  }),
  PayloadVerdict: record({
    action: field.text,
    revision: about(field.ordinal, "Number of the schema in force, by which it was checked."),
    valid: about(field.flag, "Whether the payload conforms."),
    errors: {
      type: "array",
      items: record({ field: field.text, message: field.text, value: {} }),
      description:
        "The first 20 broken rules, as `details.errors` of a refused event has them; empty if it is valid.",
    },
  }),
  ActionSample: record({
    action: field.text,
    revision: field.ordinal,
    payload: { type: "object", additionalProperties: true },
  }),
  Deprecation: record({
    action: field.text,
    since: field.timestamp,
    successor: about(field.nullableText, "The action to publish to instead."),
  }),
  SchemaWarning: record({
    pointer: about(field.text, "JSON pointer into the schema."),
    message: field.text,
  }),
} as const;
