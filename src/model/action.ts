import { actionName, application, type JsonSchema, rowid } from "../domain/request.ts";
import { about, field, everywhere, type Fields, withDefault } from "./field.ts";

/**
 * Whom a change of a schema must not break. `producer`: all that the old schema accepts is still accepted. `consumer`: who
 * was written for the old schema understands all that the new one accepts.
 */
export const COMPATIBILITY_MODES = ["full", "producer", "consumer", "none"] as const;

const compatibility = {
  type: "string",
  enum: COMPATIBILITY_MODES,
  description:
    "Whom a change of the schema must not break: producers (who publish), consumers (who read), both (full), or nobody in particular.",
} as const;

/** A member that a new record has at its default, and that a registry file may say of one all the same. */
function changedLater<const S extends JsonSchema>(schema: S) {
  return { change: schema, isDeclared: true, answer: schema } as const;
}

/** An event type: a name, the application that owns it, and the schema its payloads conform to. */
export const ACTION = {
  rowid: { change: rowid, answer: field.rowid, title: "ID" },
  action: { ...everywhere(actionName), isRequired: true, title: "Action" },
  application: { ...everywhere(application), isRequired: true, title: "Application" },
  schemata: {
    ...everywhere({
      type: "object",
      description: "A JSON Schema Draft 7 document that payloads must conform to.",
      examples: [
        { type: "object", properties: { email: { type: "string", format: "email" } }, required: ["email"] },
      ],
    }),
    isRequired: true,
    title: "Schema",
  },
  revision: {
    change: rowid,
    answer: field.ordinal,
    about: "Number of the schema now in force.",
    title: "Revision",
  },
  compatibility: {
    ...withDefault("full", compatibility),
    change: about(
      compatibility,
      `${compatibility.description} It holds from now on, for a schema in the same body too; protecting less than before needs the scope admin.`,
    ),
    title: "Mode",
  },
  deprecated: {
    ...changedLater(about(field.flag, "True: `meta.deprecated` of answers to publishers says to move on.")),
    title: "State",
  },
  retired: changedLater(
    about(field.flag, "True: publishing is refused with 410. Reading and deliveries go on."),
  ),
  successor: {
    ...changedLater({
      type: ["string", "null"],
      minLength: 1,
      maxLength: actionName.maxLength,
      pattern: actionName.pattern,
      description:
        "The action to publish to instead. Only while deprecated or retired; it is `null` again once neither is so.",
      examples: ["user.created.v2"],
    }),
    title: "Successor",
  },
  timestamped: {
    change: { type: "string", format: "date-time" },
    answer: field.timestamp,
    title: "Created",
  },
} as const satisfies Fields;
