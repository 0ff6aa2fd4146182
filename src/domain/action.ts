import { ACTION } from "../model/action.ts";
import type { ACTION_ANSWERS } from "../model/action-answers.ts";
import type { META } from "../model/meta.ts";
import { type ChangeOf, type NewOf, type RecordOf, bodyOf } from "../model/field.ts";
import { type InputSchema, byApplication, inputSchema, pageLimit, rowid, type ValueOf } from "./request.ts";

/** A JSON Schema document of Draft 7. Only objects are taken: `true` as a schema describes nothing. */
export type Schemata = Readonly<Record<string, unknown>>;

type Answers = typeof ACTION_ANSWERS;

/** An event type: a name, the application that owns it, and the schema its payloads conform to. */
export interface Action extends RecordOf<typeof ACTION> {}

/** What may change without a new revision. */
export type ActionSettings = Pick<Action, "compatibility" | "deprecated" | "retired" | "successor">;

export type NewAction = NewOf<typeof ACTION>;

/**
 * Any of what may change; what is left out stays as it is. A whole Action may be sent; the members that cannot change
 * must then agree with the one stored.
 */
export type ActionUpdate = ChangeOf<typeof ACTION>;

/** A schema that was applied. */
export interface ActionRevision extends ValueOf<Answers["ActionRevision"]> {}

/** A schema may have 256 KiB, so a page is kept small. */
export const REVISION_LIMITS = { listDefault: 20, listMax: 50 } as const;

/** Something legal that is probably a mistake: an unknown keyword, which checks nothing, or a type that no payload has. */
export interface SchemaWarning extends ValueOf<Answers["SchemaWarning"]> {}

export interface WarningMeta extends ValueOf<(typeof META)["warnings"]> {}

/** What applying a schema would do. */
export interface SchemaVerdict {
  /** Whether an update in that mode would be applied; with `revision`, whether it would have been when that was in force. */
  readonly compatible: boolean;
  readonly breaks: readonly SchemaBreak[];
  readonly warnings: readonly SchemaWarning[];
  /** `null` unless requested. */
  readonly replay: CheckedEvents | null;
}

/** Whether publishing a payload would be refused for what is in it. */
export interface PayloadVerdict extends ValueOf<Answers["PayloadVerdict"]> {}

export type PayloadError = PayloadVerdict["errors"][number];

export interface CheckedEvents extends ValueOf<Answers["CheckedEvents"]> {}

export type EventFailure = CheckedEvents["failures"][number];

export const CHECK_LIMITS = {
  /** Events validated by one check, and for how long. */
  replay: 10_000,
  replayMs: 20_000,
  failures: 100,
} as const;

/** A made-up payload that conforms to the schema in force. */
export interface ActionSample extends ValueOf<Answers["ActionSample"]> {}

/** The notice to whoever publishes to a deprecated action. */
export interface Deprecation extends ValueOf<Answers["Deprecation"]> {}

export function actionState({ deprecated, retired }: ActionSettings): "active" | "deprecated" | "retired" {
  if (retired) return "retired";
  return deprecated ? "deprecated" : "active";
}

export type CompatibilityMode = Action["compatibility"];

/** One thing a change would break. */
export interface SchemaBreak extends ValueOf<Answers["SchemaBreak"]> {}

/** How the message of a break ends that is not proven. */
export const UNPROVEN: Readonly<Record<SchemaBreak["side"], string>> = {
  producer: "It cannot be proven that all a producer may send today is still accepted.",
  consumer: "It cannot be proven that a consumer written for the old schema understands all that may come.",
};

/** Stands for what was not compared. */
export function notCompared(side: SchemaBreak["side"], change: string, remedy: string): SchemaBreak {
  const message = `${change} ${UNPROVEN[side]}`;
  return { side, pointer: "", field: "", change, message, remedy, certainty: "cannot_prove" };
}

/** Whether another mode protects somebody less. */
export function isLooser(from: CompatibilityMode, to: CompatibilityMode): boolean {
  const after = sidesOf(to);
  return sidesOf(from).some((side) => !after.includes(side));
}

/** Who is protected in a mode. */
export function sidesOf(mode: CompatibilityMode): readonly SchemaBreak["side"][] {
  if (mode === "none") return [];
  return mode === "full" ? ["producer", "consumer"] : [mode];
}

/** The member of a request that holds a schema, and the root of places in it: `schemata.properties.x`. */
export type SchemaHolder = "schemata" | "filter" | "where";

export const NEW_ACTION = bodyOf(ACTION, "new", { title: "NewAction" });

export const ACTION_UPDATE = bodyOf(ACTION, "change", {
  title: "ActionUpdate",
  description:
    "What is to change; what is left out stays as it is. A whole Action may be sent: `action`, `rowid`, `revision` and `timestamped` must then agree with those stored.",
});

export const SCHEMA_CANDIDATE = inputSchema(
  "SchemaCandidate",
  {
    schemata: ACTION.schemata.new,
    mode: { ...ACTION.compatibility.answer, description: "Instead of the action's own `compatibility`." },
    revision: { ...rowid, description: "Compares with this revision, instead of the one in force." },
    replay: {
      type: "integer",
      minimum: 0,
      maximum: CHECK_LIMITS.replay,
      default: 0,
      description: "Validates so many of the action's last events against the schema.",
    },
  },
  ["schemata"],
);
/** A schema to check without applying it. */
export type SchemaCandidate = ValueOf<typeof SCHEMA_CANDIDATE>;

/** The body is the payload itself, so that a file can be sent as it is. */
export const PAYLOAD: InputSchema = {
  title: "Payload",
  description: "A payload: any JSON object.",
  type: "object",
  properties: {},
  additionalProperties: true,
  examples: [{ email: "ada@example.com" }],
};

export const ACTION_QUERY = inputSchema("ActionQuery", { application: byApplication });

export const ACTION_UPDATE_QUERY = inputSchema("ActionUpdateQuery", {
  compatibility: {
    type: "string",
    enum: ["none"],
    description: "Applies a breaking change all the same, this once; needs the scope admin.",
  },
});

export const REVISION_QUERY = inputSchema("RevisionQuery", {
  limit: pageLimit(REVISION_LIMITS, "Revisions in one answer."),
  after: { ...rowid, description: "Walks on to revisions older than this one." },
});
export type RevisionQuery = ValueOf<typeof REVISION_QUERY>;
