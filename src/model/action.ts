import { COMPATIBILITY_AGAINST, COMPATIBILITY_MODES } from "../domain/action.ts";
import { field, type Fields } from "./field.ts";

/** An event type: a name, the application that owns it, and the schema its payloads conform to. */
export const ACTION = {
  rowid: { answer: field.rowid, title: "ID" },
  action: { answer: field.text, title: "Action" },
  application: { answer: field.text, title: "Application" },
  schemata: {
    answer: { type: "object", description: "JSON Schema Draft 7.", additionalProperties: true },
    title: "Schema",
  },
  revision: {
    answer: { type: "integer", minimum: 1, description: "Number of the schema now in force." },
    title: "Revision",
  },
  compatibility: {
    answer: {
      type: "string",
      enum: COMPATIBILITY_MODES,
      description: "Whom a change of the schema must not break.",
    },
    title: "Mode",
  },
  compatibility_against: {
    answer: {
      type: "string",
      enum: COMPATIBILITY_AGAINST,
      description: "Whether a change is compared with the last schema only or with all earlier ones.",
    },
  },
  deprecated: {
    answer: { type: "boolean", description: "Answers to publishers say that they should move on." },
    title: "State",
  },
  retired: { answer: { type: "boolean", description: "Publishing is refused." } },
  successor: {
    answer: { ...field.nullableText, description: "The action to publish to instead." },
    title: "Successor",
  },
  timestamped: { answer: field.timestamp, title: "Created" },
} as const satisfies Fields;
