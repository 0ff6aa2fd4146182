import type { CompatibilityMode, CompatibilityRule, RevisionBreak } from "./compatibility.ts";

/** A JSON Schema document of draft-07. Only objects are taken: `true` as a schema describes nothing. */
export type Schemata = Readonly<Record<string, unknown>>;

/** An event type: a name, the application that owns it, and the schema its payloads conform to. */
export interface Action extends ActionSettings {
  readonly rowid: number;
  readonly action: string;
  readonly application: string;
  readonly schemata: Schemata;
  /** Number of the schema now in force, from 1. Each applied schema is kept under its number. */
  readonly revision: number;
  /** ISO 8601 UTC, when the action was created. */
  readonly timestamped: string;
}

/** What may change about an action while its schema stays; none of it makes a revision. */
export interface ActionSettings extends CompatibilityRule {
  /** Publishers are told to move on; publishing goes on. */
  readonly deprecated: boolean;
  /** Publishing is over; reading and deliveries go on. */
  readonly retired: boolean;
  /** The action to publish to instead; only while it is deprecated or retired. */
  readonly successor: string | null;
}

export interface NewAction extends Partial<CompatibilityRule> {
  readonly action: string;
  readonly application: string;
  readonly schemata: Schemata;
}

/**
 * Any of what may change; what is left out stays as it is. A whole Action may be sent; the members that cannot change
 * must then agree with the one stored.
 */
export interface ActionUpdate extends Partial<ActionSettings> {
  readonly schemata?: Schemata;
  readonly application?: string;
  readonly action?: string;
  readonly rowid?: number;
  readonly revision?: number;
  readonly timestamped?: string;
}

/** A schema that was applied, under its number. */
export interface ActionRevision {
  readonly action: string;
  readonly revision: number;
  readonly schemata: Schemata;
  readonly admission: Admission | null;
  /** ISO 8601 UTC, when it was applied. */
  readonly timestamped: string;
}

/** How a schema came to replace the one before it. `null` for the first, and for those applied before this was kept. */
export interface Admission {
  /** Whom it was not to break: `none` where it was forced. */
  readonly compatibility: CompatibilityMode;
  /** What it breaks of the revision before it, for whomever. */
  readonly breaks: number;
}

export interface RevisionQuery {
  /** 1 to 50, default 20. */
  readonly limit?: number;
  /** Walks on to revisions older than this one. */
  readonly after?: number;
}

/** A schema may have 256 KiB, so a page is kept small. */
export const REVISION_LIMITS = { listDefault: 20, listMax: 50 } as const;

/**
 * Something legal in Draft 7 that is probably a slip: an unknown keyword or format, which checks nothing, or a type that
 * no payload has.
 */
export interface SchemaWarning {
  /** JSON pointer into the schema, `""` for its root. */
  readonly pointer: string;
  readonly message: string;
}

export interface WarningMeta {
  readonly warnings: readonly SchemaWarning[];
}

/** A schema that is only to be judged. */
export interface SchemaCandidate {
  readonly schemata: Schemata;
  /** Instead of the action's own `compatibility`. */
  readonly mode?: CompatibilityMode;
  /** Validates so many of the last events against it: 0 to 10,000, default 0. */
  readonly replay?: number;
}

/** What applying a schema would do. */
export interface SchemaVerdict {
  /** Whether an update in that mode would be applied. */
  readonly compatible: boolean;
  readonly breaks: readonly RevisionBreak[];
  readonly warnings: readonly SchemaWarning[];
  /** `null` unless asked for. */
  readonly replay: CheckedEvents | null;
}

export interface CheckedEvents {
  /** Fewer than asked for where there are no more, or where time was over. */
  readonly checked: number;
  readonly failed: number;
  /** The first 100, newest event first. */
  readonly failures: readonly EventFailure[];
}

export interface EventFailure {
  /** Rowid of the event. */
  readonly event: number;
  readonly field: string;
  readonly message: string;
}

export const CHECK_LIMITS = {
  /** Events validated by one check. */
  replay: 10_000,
  failures: 100,
  /** With so many breaks, no older revision is compared; one break more tells which those are. */
  breaks: 1_000,
  /** How long events are validated for. */
  replayMs: 20_000,
} as const;

/** Told to whoever publishes to a deprecated action. */
export interface Deprecation {
  readonly action: string;
  /** ISO 8601 UTC to the second, as the `Deprecation` header has it. */
  readonly since: string;
  readonly successor: string | null;
}

export function actionState({ deprecated, retired }: ActionSettings): "active" | "deprecated" | "retired" {
  if (retired) return "retired";
  return deprecated ? "deprecated" : "active";
}
