import type { InputSchema, JsonSchema, ValueOf } from "../domain/request.ts";
import type { FieldKind } from "./value-kinds.ts";

/** What records are made of. */
export const field = {
  rowid: {
    type: "integer",
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: "Assigned by the service in rising order; exceeds 32 bits after a restore.",
  },
  timestamp: { type: "string", format: "date-time", description: "ISO 8601 UTC with milliseconds." },
  nullableRowid: { type: ["integer", "null"], minimum: 1 },
  nullableTimestamp: { type: ["string", "null"], format: "date-time" },
  text: { type: "string" },
  nullableText: { type: ["string", "null"] },
  count: { type: "integer", minimum: 0 },
  nullableCount: { type: ["integer", "null"], minimum: 0 },
  /** The number of a revision, of an attempt. */
  ordinal: { type: "integer", minimum: 1 },
  flag: { type: "boolean" },
} as const satisfies Readonly<Record<string, JsonSchema>>;

/** A schema with what is said of it where it is used. */
export function about<const S extends JsonSchema>(schema: S, description: string): S {
  return { ...schema, description };
}

/** One member of a record: what it may be, where it occurs, and how people read and write it. */
export interface Field {
  /** Its schema in the body that creates a record, in the one that changes it, and in answers. Absent where it is not. */
  readonly new?: JsonSchema;
  readonly change?: JsonSchema;
  readonly answer?: JsonSchema;
  /** What answers say of it. */
  readonly about?: string;
  /** The body that creates a record must have it. */
  readonly isRequired?: true;
  /** Registry files have it of a new record, too, though the body that creates one has it not. */
  readonly isDeclared?: true;
  /** The value of a setting that stands for what all records have. */
  readonly none?: null | false;
  /** It has no meaning for records of the other mode. */
  readonly only?: { readonly mode: "push" | "pull"; readonly why: string };
  /** How people write its values; by default as JSON has them. */
  readonly kind?: FieldKind;
  /** What people call it: the line of a record, the label of a form. Without one it has neither. */
  readonly title?: string;
  /** A value in words, made from its text: `at most 3 at a time`. */
  readonly words?: (text: string) => string;
  /** What holds where it has no value. */
  readonly unset?: string;
  /** The summary of the flag that stands for it alone. */
  readonly flag?: string;
  /** By default the flag is named like the member, without its unit. */
  readonly flagName?: string;
  /** The group in the form of the page that it is in, and what stands beside it there. */
  readonly group?: string;
  readonly hint?: string;
}

/** The members by which a record names the subscription that it is of. */
export const ofSubscription = {
  subscription_id: { answer: field.rowid },
  application: { answer: field.text },
  subscription: { answer: field.text, title: "Subscription" },
  action: { answer: field.text, title: "Action" },
} as const satisfies Fields;

/** A kind of record, by its members. They are in the order in which answers have them. */
export type Fields = Readonly<Record<string, Field>>;

/** A member that is everywhere alike. */
export function everywhere<const S extends JsonSchema>(schema: S) {
  return { new: schema, change: schema, answer: schema } as const;
}

/** One that has a value in a record whose body does not say it. */
export function withDefault<const D, const S extends JsonSchema>(value: D, schema: S) {
  return { ...everywhere(schema), new: { ...schema, default: value } } as const;
}

/** A setting that is `null` where a record says nothing of it. */
export function setting<const S extends JsonSchema>(schema: S) {
  return { ...everywhere(schema), none: null } as const;
}

/** The members that have a property, such as `answer` or `none`, each with that. */
type Having<F, Property extends string> = {
  readonly [K in keyof F as F[K] extends { readonly [P in Property]: unknown } ? K : never]: F[K][Property &
    keyof F[K]];
};

/** Each of its members is that of the description, so an editor leads from a record's member to what is said of it. */
type ValuesIn<F, Place extends string> = {
  readonly [K in keyof Having<F, Place>]: ValueOf<Having<F, Place>[K]>;
};

/** A record as it is answered. */
export type RecordOf<F> = ValuesIn<F, "answer">;

/** The body that changes a record. */
export type ChangeOf<F> = Partial<ValuesIn<F, "change">>;

/** The body that creates a record. */
export type NewOf<F> = Partial<ValuesIn<F, "new">> &
  Pick<ValuesIn<F, "new">, keyof Having<F, "isRequired"> & keyof Having<F, "new">>;

/** The names of the settings. */
export type SettingOf<F> = keyof Having<F, "none">;

/** The schema of the body that creates a record, or changes one. Unknown members are refused, so that no typo goes unnoticed. */
export function bodyOf(
  fields: Fields,
  body: "new" | "change",
  says: { readonly title: string; readonly description?: string },
): InputSchema {
  const members = Object.entries(fields).filter(([, member]) => member[body] !== undefined);
  const required = members.flatMap(([name, member]) => (body === "new" && member.isRequired ? [name] : []));
  return {
    ...says,
    type: "object",
    properties: Object.fromEntries(members.map(([name, member]) => [name, member[body]!])),
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  };
}

/** The members of a record as answers have them. */
export function answersOf<const F extends Fields>(fields: F): Having<F, "answer"> {
  const answered = Object.entries(fields).flatMap(([name, { answer, about: description }]) =>
    answer === undefined ? [] : [[name, description === undefined ? answer : { ...answer, description }]],
  );
  return Object.fromEntries(answered) as Having<F, "answer">;
}

/** The settings of a record that has none of its own. */
export function noneOf<F extends Fields>(fields: F): Pick<RecordOf<F>, SettingOf<F> & keyof RecordOf<F>> {
  const settings = Object.entries(fields).filter(([, member]) => "none" in member);
  return Object.fromEntries(settings.map(([name, { none }]) => [name, none])) as never;
}

/** An object that has exactly these members. */
export function record<
  const P extends Readonly<Record<string, JsonSchema>>,
  O extends keyof P & string = never,
>(
  properties: P,
  optional: readonly O[] = [],
): {
  readonly type: "object";
  readonly properties: P;
  readonly required: readonly Exclude<keyof P & string, O>[];
  readonly additionalProperties: false;
} {
  const names: readonly string[] = optional;
  const required = Object.keys(properties).filter((name) => !names.includes(name)) as never;
  return { type: "object", properties, required, additionalProperties: false };
}
