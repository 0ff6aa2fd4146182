import type { BodySchema, JsonSchema } from "../domain/request.ts";
import type { Fields, RecordOf, SettingOf } from "./field.ts";

/** The schema of the body that creates a record, or changes one. Unknown members are refused, so that no typo goes unnoticed. */
export function bodyOf(
  fields: Fields,
  body: "new" | "change",
  about: { readonly title: string; readonly description?: string },
): BodySchema {
  const members = Object.entries(fields).filter(([, field]) => field[body] !== undefined);
  const required = members.flatMap(([name, field]) => (body === "new" && field.isRequired ? [name] : []));
  return {
    ...about,
    type: "object",
    properties: Object.fromEntries(members.map(([name, field]) => [name, field[body]])),
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  };
}

/** The schema of a record as it is answered. */
export function recordOf(fields: Fields, more: Readonly<Record<string, JsonSchema>> = {}): JsonSchema {
  const answered = Object.entries(fields).flatMap(([name, { answer, about }]) => {
    if (answer === undefined) return [];
    return [[name, about === undefined ? answer : { ...answer, description: about }] as const];
  });
  const optional = Object.keys(fields).filter((name) => fields[name]!.isOptional);
  return record({ ...Object.fromEntries(answered), ...more }, optional);
}

/** The settings of a record that has none of its own. */
export function noneOf<F extends Fields>(fields: F): Pick<RecordOf<F>, SettingOf<F> & keyof RecordOf<F>> {
  const settings = Object.entries(fields).filter(([, field]) => "none" in field);
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
