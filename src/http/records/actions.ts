import { COMPATIBILITY_AGAINST, COMPATIBILITY_MODES } from "../../domain/compatibility.ts";
import type { JsonSchema } from "../route.ts";
import { count, record, ref, rowid, text, timestamp } from "./members.ts";

/** Actions as they are answered, and what checking their schemas comes to. */
export const ACTION_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Action: record({
    rowid,
    action: text,
    application: text,
    schemata: { type: "object", description: "JSON Schema Draft 7.", additionalProperties: true },
    revision: { type: "integer", minimum: 1, description: "Number of the schema now in force." },
    compatibility: {
      type: "string",
      enum: COMPATIBILITY_MODES,
      description: "Whom a change of the schema must not break.",
    },
    compatibility_against: {
      type: "string",
      enum: COMPATIBILITY_AGAINST,
      description: "Whether a change is compared with the last schema or with all there were.",
    },
    deprecated: { type: "boolean", description: "Publishers are told to move on." },
    retired: { type: "boolean", description: "Publishing is refused." },
    successor: { type: ["string", "null"], description: "The action to publish to instead." },
    timestamped: timestamp,
  }),
  ActionRevision: record({
    action: text,
    revision: { type: "integer", minimum: 1 },
    schemata: { type: "object", description: "JSON Schema Draft 7.", additionalProperties: true },
    admission: {
      type: ["object", "null"],
      description:
        "How it came to replace the one before it; `null` for the first, and for those of older files.",
      properties: {
        compatibility: {
          type: "string",
          enum: COMPATIBILITY_MODES,
          description: "Whom it was not to break; `none` where it was forced.",
        },
        breaks: {
          type: "integer",
          minimum: 0,
          description: "What it breaks of the revision before it, for producers and consumers together.",
        },
      },
      required: ["compatibility", "breaks"],
      additionalProperties: false,
    },
    timestamped: { ...timestamp, description: "When it was applied." },
  }),
  SchemaBreak: record(
    {
      revision: {
        type: "integer",
        minimum: 1,
        description: "The revision it breaks with; where it stands for several, the newest of them.",
      },
      side: { type: "string", enum: ["producer", "consumer"], description: "Who breaks." },
      pointer: {
        ...text,
        description: "JSON pointer to the place: in the new schema, or in the old one for what is gone.",
      },
      was: { description: "What the old schema says there; left out where it says nothing." },
      is: { description: "What the new one says; left out where it says nothing." },
      message: text,
      remedy: { ...text, description: "What to do instead." },
      certainty: {
        type: "string",
        enum: ["proven", "cannot_prove"],
        description: "`cannot_prove`: it may be harmless, but that cannot be shown.",
      },
      example: { description: "A payload that shows it." },
    },
    ["was", "is", "example"],
  ),
  SchemaVerdict: record({
    compatible: { type: "boolean", description: "Whether an update in that mode would be applied." },
    breaks: { type: "array", items: ref("SchemaBreak") },
    warnings: { type: "array", items: ref("SchemaWarning") },
    replay: { oneOf: [ref("CheckedEvents"), { type: "null" }], description: "`null` unless asked for." },
  }),
  CheckedEvents: record({
    checked: {
      ...count,
      description: "Fewer than asked for where there are no more, or where 20 seconds were over.",
    },
    failed: count,
    failures: {
      type: "array",
      items: record({ event: rowid, field: text, message: text }),
      description: "The first 100, newest event first.",
    },
  }),
  Deprecation: record({
    action: text,
    since: { ...timestamp, description: "To the second." },
    successor: { type: ["string", "null"], description: "The action to publish to instead." },
  }),
  SchemaWarning: record({
    pointer: { ...text, description: "JSON pointer into the schema." },
    message: text,
  }),
};

export const WARNINGS: JsonSchema = record({ warnings: { type: "array", items: ref("SchemaWarning") } });
