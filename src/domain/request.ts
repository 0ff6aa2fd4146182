import { EvregError } from "./error.ts";
import { LABEL_PATTERN, NAME_LENGTH } from "./names.ts";

/** The store cannot hold what comes after a NUL. */
export const NO_NUL = "^[^\\u0000]*$";

/** The JSON types that a schema can name. */
interface JsonTypes {
  readonly string: string;
  readonly integer: number;
  readonly number: number;
  readonly boolean: boolean;
  readonly null: null;
}

/** What a schema takes, so that nothing is described twice. */
export type ValueOf<S> = S extends { readonly enum: readonly (infer E)[] }
  ? E
  : S extends { readonly const: infer C }
    ? C
    : S extends { readonly type: infer T }
      ? TypedValue<S, T extends readonly (infer Each)[] ? Each : T>
      : unknown;

/** What a schema takes of each type that it names. */
type TypedValue<S, T> = T extends "object"
  ? ObjectOf<S>
  : T extends "array"
    ? readonly (S extends { readonly items: infer I } ? ValueOf<I> : unknown)[]
    : JsonTypes[T & keyof JsonTypes];

type ObjectOf<S> = S extends { readonly properties: object }
  ? MembersOf<S>
  : Readonly<
      Record<
        string,
        S extends { readonly additionalProperties: infer A extends object } ? ValueOf<A> : unknown
      >
    >;

/** The members that an object has, each as the schema describes it. */
type MembersOf<S> = S extends { readonly properties: infer P; readonly required?: readonly (infer R)[] }
  ? { readonly [N in keyof P & R]: ValueOf<P[N]> } & {
      readonly [N in Exclude<keyof P, R>]?: ValueOf<P[N]>;
    }
  : never;

/** How much of a refused value is sent back. */
const SHOWN_CHARACTERS = 100;

export function malformedField(field: string, message: string, value: unknown): EvregError {
  return new EvregError("malformed", `${field}: ${message}`, { field, message, value: shown(value) });
}

export function shown(value: unknown): unknown {
  if (typeof value === "string" && value.length > SHOWN_CHARACTERS) {
    return `${value.slice(0, SHOWN_CHARACTERS).toWellFormed()}…`;
  }
  return typeof value === "object" ? null : (value ?? null);
}

export type JsonSchema = Readonly<Record<string, unknown>>;

/** A schema that checks what a request says, and that OpenAPI publishes. Unknown members are refused, so that no typo goes unnoticed. */
export interface InputSchema<P = Readonly<Record<string, JsonSchema>>, R = string> extends JsonSchema {
  readonly title: string;
  readonly type: "object";
  readonly properties: P;
  readonly required?: readonly R[];
}

export const actionName = {
  type: "string",
  minLength: 1,
  maxLength: NAME_LENGTH,
  pattern: "^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$",
  description: "Segments of letters, digits, _ and - joined by single dots.",
  examples: ["user.created", "user.created.v2"],
} as const;

/** What a subscription matches: see `checkActionPattern`. */
export const actionPattern = {
  ...actionName,
  pattern: "^([A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*(\\.\\*)?|\\*)$",
  examples: ["user.created", "user.*", "*"],
} as const;

export const label = {
  type: "string",
  minLength: 1,
  maxLength: NAME_LENGTH,
  pattern: `^${LABEL_PATTERN}$`,
} as const;

export const application = {
  ...label,
  description: "Name of the owning application: printable characters, trimmed.",
  examples: ["billing"],
} as const;

/** Any name: a list of what does not exist is empty. */
const byName = { type: "string", minLength: 1, maxLength: NAME_LENGTH, pattern: NO_NUL } as const;
export const byAction = {
  ...byName,
  description: "Only of this action; `order.*`: of all beneath order.",
  examples: ["order.created", "order.*"],
} as const;
export const byApplication = { ...byName, description: "Only of this application." } as const;

export const from = {
  type: "string",
  format: "date-time",
  description: "Start of the time range, itself included.",
  examples: ["2026-01-31T00:00:00Z"],
} as const;

export const to = {
  type: "string",
  format: "date-time",
  description: "End of the time range, itself not included.",
  examples: ["2026-02-01T00:00:00Z"],
} as const;

export const rowid = { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER } as const;

export function pageLimit(
  { listMax, listDefault }: { readonly listMax: number; readonly listDefault: number },
  description: string,
) {
  return { type: "integer", minimum: 1, maximum: listMax, default: listDefault, description } as const;
}

/** A body, or the parameters of a query, which all may be left out. */
export function inputSchema<const P extends Readonly<Record<string, JsonSchema>>, R extends keyof P = never>(
  title: string,
  properties: P,
  required?: readonly R[],
): InputSchema<P, R> & { readonly additionalProperties: false } {
  const all = required === undefined ? {} : { required };
  return { title, type: "object", properties, ...all, additionalProperties: false };
}
