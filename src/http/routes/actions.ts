import {
  ACTION_QUERY,
  ACTION_UPDATE,
  ACTION_UPDATE_QUERY,
  COMPATIBILITY_AGAINST,
  COMPATIBILITY_MODES,
  NEW_ACTION,
  REVISION_QUERY,
  SCHEMA_CANDIDATE,
} from "../../domain/action.ts";
import { REGISTRY_BYTES } from "../response-budget.ts";
import {
  field,
  type JsonSchema,
  many,
  one,
  operation,
  record,
  ref,
  type Route,
  SCHEMA_BODY_MAX_BYTES,
} from "./route.ts";

/** Actions as they are answered, and what checking their schemas comes to. */
export const ACTION_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Action: record({
    rowid: field.rowid,
    action: field.text,
    application: field.text,
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
    timestamped: field.timestamp,
  }),
  ActionRevision: record({
    action: field.text,
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
    timestamped: { ...field.timestamp, description: "When it was applied." },
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
        ...field.text,
        description: "JSON pointer to the place: in the new schema, or in the old one for what is gone.",
      },
      was: { description: "What the old schema says there; left out where it says nothing." },
      is: { description: "What the new one says; left out where it says nothing." },
      message: field.text,
      remedy: { ...field.text, description: "What to do instead." },
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
      ...field.count,
      description: "Fewer than asked for where there are no more, or where 20 seconds were over.",
    },
    failed: field.count,
    failures: {
      type: "array",
      items: record({ event: field.rowid, field: field.text, message: field.text }),
      description: "The first 100, newest event first.",
    },
  }),
  Deprecation: record({
    action: field.text,
    since: { ...field.timestamp, description: "To the second." },
    successor: { type: ["string", "null"], description: "The action to publish to instead." },
  }),
  SchemaWarning: record({
    pointer: { ...field.text, description: "JSON pointer into the schema." },
    message: field.text,
  }),
};

export const WARNINGS: JsonSchema = record({ warnings: { type: "array", items: ref("SchemaWarning") } });

export const ACTION_ROUTES: readonly Route[] = [
  operation({
    path: "/v1/actions",
    operationId: "listActions",
    summary: "All actions, by name",
    query: ACTION_QUERY,
    answer: ["The actions.", many("Action")],
    maxBytes: REGISTRY_BYTES,
    run: (evreg, { query }) => evreg.actions.list(query),
  }),
  operation({
    path: "/v1/actions",
    operationId: "createAction",
    summary: "Register an action with the schema its payloads conform to",
    description:
      "Names that begin with `evreg.` are kept for events of the service about itself: `evreg.delivery.failed`, " +
      "`evreg.subscription.blocked`, `evreg.subscription.deactivated` and `evreg.replay.finished` are there from the " +
      "beginning, of the application `evreg`. They are read and subscribed to like any other, and cannot be created, changed or published.",
    body: NEW_ACTION,
    status: 201,
    answer: ["The action.", one("Action", WARNINGS)],
    failures: [409],
    maxBodyBytes: SCHEMA_BODY_MAX_BYTES,
    run: (evreg, { body, signal }) => evreg.actions.create(body, signal),
  }),
  operation({
    path: "/v1/actions/:name",
    operationId: "getAction",
    summary: "One action",
    answer: ["The action.", one("Action")],
    failures: [404],
    run: (evreg, { name }) => evreg.actions.get(name),
  }),
  operation({
    method: "PUT",
    path: "/v1/actions/:name",
    operationId: "updateAction",
    summary: "Apply a schema as the action's next revision, or change how it is kept",
    description:
      "A schema that breaks nobody whom the action's `compatibility` protects is applied; another one is 409 with a suggested " +
      "name and `details.changes`, each with the `revision` it breaks with, `side` (`producer` or `consumer`), `pointer`, " +
      "`was`, `is`, `message`, `remedy`, `certainty` (`proven` or `cannot_prove`) and, where one was found, `example`: a " +
      "payload that shows it. " +
      "`?compatibility=none` applies it all the same, this once, and needs the scope `admin`; so does a `compatibility` in the body that protects less than before. " +
      "To roll back, send the schema of an earlier revision.",
    query: ACTION_UPDATE_QUERY,
    body: ACTION_UPDATE,
    answer: ["The action.", one("Action", WARNINGS)],
    failures: [404, 409],
    maxBodyBytes: SCHEMA_BODY_MAX_BYTES,
    run: (evreg, { name, query, body, signal }) => evreg.actions.update(name, body, query, signal),
  }),
  operation({
    path: "/v1/actions/:name/revisions",
    operationId: "listActionRevisions",
    summary: "The schemas an action has had, newest first",
    query: REVISION_QUERY,
    answer: ["The revisions.", many("ActionRevision")],
    failures: [404],
    maxBytes: REGISTRY_BYTES,
    run: (evreg, { name, query }) => evreg.actions.revisions(name, query),
  }),
  operation({
    path: "/v1/actions/:name/revisions/:id",
    operationId: "getActionRevision",
    summary: "One schema an action has had",
    answer: ["The revision.", one("ActionRevision")],
    failures: [404],
    run: (evreg, { id, name }) => evreg.actions.revision(name, id),
  }),
  operation({
    path: "/v1/actions/:name/check",
    operationId: "checkAction",
    summary: "Tell what applying a schema would break, and change nothing",
    description:
      "With `replay` the action's last events are validated against it as well; those of them that do not conform do not count for `compatible`.",
    scope: "read",
    body: SCHEMA_CANDIDATE,
    answer: ["The verdict.", one("SchemaVerdict")],
    failures: [404],
    maxBodyBytes: SCHEMA_BODY_MAX_BYTES,
    run: (evreg, { name, body, signal }) => evreg.actions.check(name, body, signal),
  }),
];
