import { EvregError, invalidField } from "../domain/error.ts";
import { ISO_TIME_EXPECTED, parseIsoTime } from "../domain/iso-time.ts";
import type { BodySchema } from "../domain/requests/members.ts";
import { compileSchema } from "../schema/compile.ts";
import type { Validator } from "../schema/compile.ts";

/** A check with a better message than a pattern has; answers the value to go on with, such as a trimmed name. */
type MemberCheck = (field: string, value: string) => unknown;

/** Compiled when first needed: a command that only reads never pays for them. */
const validators = new Map<BodySchema, Validator>();

/**
 * Holds a request's body to its schema.
 * @param checks for members that are strings, done before the schema looks at them
 * @returns the members, checked; the caller names their type
 * @throws `invalid` with `{ field, message, value }`, the value of a `writeOnly` member and of a header left out
 */
export function readBody(
  schema: BodySchema,
  body: unknown,
  checks: Readonly<Record<string, MemberCheck>> = {},
): object {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw invalidField("body", "must be a JSON object");
  }
  // A member that is `undefined` is one left out, as it would be once written as JSON.
  const members = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
  for (const [name, check] of Object.entries(checks)) {
    const value = members[name];
    if (typeof value === "string") members[name] = check(name, value);
  }
  const fault = validatorOf(schema).validate(members);
  if (fault === undefined) return members;
  const { field, message, value } = fault;
  throw new EvregError("invalid", `${field}: ${message}`, {
    field,
    message,
    value: isKeptBack(schema, field) ? null : value,
  });
}

/** Whether a fault is in, or inside, a member that is never to be shown, or that people put credentials into. */
function isKeptBack(schema: BodySchema, field: string): boolean {
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, { readonly writeOnly?: true }>>;
  const [member = ""] = field.split(/[.[]/);
  return member === "headers" || properties[member]?.writeOnly === true;
}

/** For a member that is a time: the same times are taken everywhere. */
export function checkTime(field: string, value: string): string {
  if (parseIsoTime(value) === undefined) throw invalidField(field, ISO_TIME_EXPECTED, value);
  return value;
}

function validatorOf(schema: BodySchema): Validator {
  let validator = validators.get(schema);
  if (validator === undefined) validators.set(schema, (validator = compileSchema(schema)));
  return validator;
}
