/** A JSON Schema document of draft-07. Only objects are taken: `true` as a schema describes nothing. */
export type Schemata = Readonly<Record<string, unknown>>;

/** An event type: a name, the application that owns it, and the schema its payloads conform to. */
export interface Action {
  readonly rowid: number;
  readonly action: string;
  readonly application: string;
  readonly schemata: Schemata;
  /** Number of the schema now in force, from 1. Each applied schema is kept under its number. */
  readonly revision: number;
  /** ISO 8601 UTC, when the action was created. */
  readonly timestamped: string;
}

export interface NewAction {
  readonly action: string;
  readonly application: string;
  readonly schemata: Schemata;
}

/** A whole Action may be sent; its other members must then agree with the one stored. */
export interface ActionUpdate {
  readonly schemata: Schemata;
  readonly application?: string;
  readonly action?: string;
  readonly rowid?: number;
  readonly revision?: number;
  readonly timestamped?: string;
}

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
