import {
  ACTION_QUERY,
  ACTION_UPDATE,
  ACTION_UPDATE_QUERY,
  type ActionUpdate,
  COMPATIBILITY_AGAINST,
  COMPATIBILITY_MODES,
  NEW_ACTION,
  type NewAction,
  REVISION_QUERY,
  SCHEMA_CANDIDATE,
  type SchemaCandidate,
} from "../../domain/action.ts";
import { parseJson } from "../../json/raw-json.ts";
import { PAGE_BYTES, REGISTRY_BYTES } from "../response-budget.ts";
import { listReply, reply } from "../response.ts";
import {
  count,
  type JsonSchema,
  many,
  one,
  record,
  ref,
  type Route,
  rowid,
  SCHEMA_BODY_MAX_BYTES,
  text,
  timestamp,
} from "./route.ts";

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

const tag = "actions";

export const ACTION_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/actions",
    operationId: "listActions",
    tag,
    summary: "All actions, by name",
    access: "token",
    scope: "read",
    query: ACTION_QUERY,
    answers: { 200: { description: "The actions.", schema: many("Action") } },
    failures: [],
    async handle(evreg, incoming, { memory }) {
      const query = incoming.query(ACTION_QUERY);
      return memory.answer(incoming, REGISTRY_BYTES, async () => {
        const { data } = await evreg.actions.list(query);
        return listReply(200, data);
      });
    },
  },
  {
    method: "POST",
    path: "/v1/actions",
    operationId: "createAction",
    tag,
    summary: "Register an action with the schema its payloads conform to",
    description:
      "Names that begin with `evreg.` are kept for events of the service about itself: `evreg.delivery.failed`, " +
      "`evreg.subscription.blocked`, `evreg.subscription.deactivated` and `evreg.replay.finished` are there from the " +
      "beginning, of the application `evreg`. They are read and subscribed to like any other, and cannot be created, changed or published.",
    access: "token",
    scope: "write",
    body: NEW_ACTION,
    answers: { 201: { description: "The action.", schema: one("Action", WARNINGS) } },
    failures: [409],
    async handle(evreg, incoming) {
      const input = parseJson(await incoming.body(SCHEMA_BODY_MAX_BYTES)) as NewAction;
      return reply(201, await incoming.whileThere((gone) => evreg.actions.create(input, gone)));
    },
  },
  {
    method: "GET",
    path: "/v1/actions/:name",
    operationId: "getAction",
    tag,
    summary: "One action",
    access: "token",
    scope: "read",
    answers: { 200: { description: "The action.", schema: one("Action") } },
    failures: [404],
    async handle(evreg, incoming, { memory }) {
      const name = incoming.param("name");
      return memory.answer(incoming, PAGE_BYTES, async () => reply(200, await evreg.actions.get(name)));
    },
  },
  {
    method: "PUT",
    path: "/v1/actions/:name",
    operationId: "updateAction",
    tag,
    summary: "Apply a schema as the action's next revision, or change how it is kept",
    description:
      "A schema that breaks nobody whom the action's `compatibility` protects is applied; another one is 409 with a suggested " +
      "name and `details.changes`, each with the `revision` it breaks with, `side` (`producer` or `consumer`), `pointer`, " +
      "`was`, `is`, `message`, `remedy`, `certainty` (`proven` or `cannot_prove`) and, where one was found, `example`: a " +
      "payload that shows it. " +
      "`?compatibility=none` applies it all the same, this once, and needs the scope `admin`; so does a `compatibility` in the body that protects less than before. " +
      "To roll back, send the schema of an earlier revision.",
    access: "token",
    scope: "write",
    query: ACTION_UPDATE_QUERY,
    body: ACTION_UPDATE,
    answers: { 200: { description: "The action.", schema: one("Action", WARNINGS) } },
    failures: [404, 409],
    async handle(evreg, incoming) {
      const options = incoming.query(ACTION_UPDATE_QUERY) as { compatibility?: "none" };
      const input = parseJson(await incoming.body(SCHEMA_BODY_MAX_BYTES)) as ActionUpdate;
      const name = incoming.param("name");
      return reply(
        200,
        await incoming.whileThere((gone) => evreg.actions.update(name, input, options, gone)),
      );
    },
  },
  {
    method: "GET",
    path: "/v1/actions/:name/revisions",
    operationId: "listActionRevisions",
    tag,
    summary: "The schemas an action has had, newest first",
    access: "token",
    scope: "read",
    query: REVISION_QUERY,
    answers: { 200: { description: "The revisions.", schema: many("ActionRevision") } },
    failures: [404],
    async handle(evreg, incoming, { memory }) {
      const query = incoming.query(REVISION_QUERY);
      const name = incoming.param("name");
      return memory.answer(incoming, REGISTRY_BYTES, async () => {
        const { data } = await evreg.actions.revisions(name, query);
        return listReply(200, data);
      });
    },
  },
  {
    method: "GET",
    path: "/v1/actions/:name/revisions/:id",
    operationId: "getActionRevision",
    tag,
    summary: "One schema an action has had",
    access: "token",
    scope: "read",
    answers: { 200: { description: "The revision.", schema: one("ActionRevision") } },
    failures: [404],
    async handle(evreg, incoming, { memory }) {
      const name = incoming.param("name");
      const id = incoming.id();
      return memory.answer(incoming, PAGE_BYTES, async () =>
        reply(200, await evreg.actions.revision(name, id)),
      );
    },
  },
  {
    method: "POST",
    path: "/v1/actions/:name/check",
    operationId: "checkAction",
    tag,
    summary: "Tell what applying a schema would break, and change nothing",
    description:
      "With `replay` the action's last events are validated against it as well; those of them that do not conform do not count for `compatible`.",
    access: "token",
    scope: "read",
    body: SCHEMA_CANDIDATE,
    answers: { 200: { description: "The verdict.", schema: one("SchemaVerdict") } },
    failures: [404],
    async handle(evreg, incoming) {
      const candidate = parseJson(await incoming.body(SCHEMA_BODY_MAX_BYTES)) as SchemaCandidate;
      const name = incoming.param("name");
      return reply(200, await incoming.whileThere((gone) => evreg.actions.check(name, candidate, gone)));
    },
  },
];
