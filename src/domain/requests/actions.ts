import { CHECK_LIMITS, REVISION_LIMITS } from "../action.ts";
import { COMPATIBILITY_AGAINST, COMPATIBILITY_MODES, DEFAULT_RULE } from "../compatibility.ts";
import { NAME_LENGTH } from "../names.ts";
import type { QuerySchema } from "../query.ts";
import { type BodySchema, actionName, application, byApplication, querySchema, rowid } from "./members.ts";

const schemata = {
  type: "object",
  description: "A JSON Schema Draft 7 document that payloads must conform to.",
  examples: [
    { type: "object", properties: { email: { type: "string", format: "email" } }, required: ["email"] },
  ],
} as const;

const compatibility = {
  type: "string",
  enum: COMPATIBILITY_MODES,
  description:
    "Whom a change of the schema must not break: producers (who publish), consumers (who read), both (full), or nobody in particular.",
} as const;

const compatibilityAgainst = {
  type: "string",
  enum: COMPATIBILITY_AGAINST,
  description:
    "What a change is compared with: the schema in force (last), or every revision there was (all, which others call transitive).",
} as const;

const state = {
  deprecated: {
    type: "boolean",
    description: "True: whoever publishes is told to move on, by the header `Deprecation`.",
  },
  retired: {
    type: "boolean",
    description: "True: publishing is refused with 410. Reading and deliveries go on.",
  },
  successor: {
    type: ["string", "null"],
    minLength: 1,
    maxLength: NAME_LENGTH,
    pattern: actionName.pattern,
    description:
      "The action to publish to instead. Only while deprecated or retired; it is `null` again once neither is so.",
    examples: ["user.created.v2"],
  },
} as const;

const ofNewAction = {
  action: actionName,
  application,
  schemata,
  compatibility: { ...compatibility, default: DEFAULT_RULE.compatibility },
  compatibility_against: { ...compatibilityAgainst, default: DEFAULT_RULE.compatibility_against },
} as const;

export const NEW_ACTION: BodySchema = {
  title: "NewAction",
  type: "object",
  properties: ofNewAction,
  required: ["action", "application", "schemata"],
  additionalProperties: false,
};

export const ACTION_UPDATE: BodySchema = {
  title: "ActionUpdate",
  description:
    "What is to change; what is left out stays as it is. A whole Action may be sent: `action`, `rowid`, `revision` and `timestamped` must then agree with those stored.",
  type: "object",
  properties: {
    schemata,
    application,
    compatibility: {
      ...compatibility,
      description: `${compatibility.description} It holds from now on, for a schema in the same body too; protecting less than before needs the scope admin.`,
    },
    compatibility_against: compatibilityAgainst,
    ...state,
    action: actionName,
    rowid,
    revision: rowid,
    timestamped: { type: "string", format: "date-time" },
  },
  additionalProperties: false,
};

/** An action as a file declares it: a new one, and whether it goes on. */
export const DECLARED_ACTION: BodySchema = {
  ...NEW_ACTION,
  title: "DeclaredAction",
  properties: { ...ofNewAction, ...state },
};

export const SCHEMA_CANDIDATE: BodySchema = {
  title: "SchemaCandidate",
  type: "object",
  properties: {
    schemata,
    mode: { ...compatibility, description: "Instead of the action's own `compatibility`." },
    replay: {
      type: "integer",
      minimum: 0,
      maximum: CHECK_LIMITS.replay,
      default: 0,
      description: "Validates so many of the action's last events against the schema.",
    },
  },
  required: ["schemata"],
  additionalProperties: false,
};

export const ACTION_QUERY: QuerySchema = querySchema("ActionQuery", { application: byApplication });

export const ACTION_UPDATE_QUERY: QuerySchema = querySchema("ActionUpdateQuery", {
  compatibility: {
    type: "string",
    enum: ["none"],
    description: "Applies a breaking change all the same, this once; needs the scope admin.",
  },
});

export const REVISION_QUERY: QuerySchema = querySchema("RevisionQuery", {
  limit: {
    type: "integer",
    minimum: 1,
    maximum: REVISION_LIMITS.listMax,
    default: REVISION_LIMITS.listDefault,
    description: "Revisions in one answer.",
  },
  after: { ...rowid, description: "Walks on to revisions older than this one." },
});
