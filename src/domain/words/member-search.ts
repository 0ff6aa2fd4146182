import { type FieldPath, pathNamed, pointerSteps } from "../../json/field-path.ts";

/** A member of a payload that somebody typed with its value. */
interface TypedMember {
  readonly path: FieldPath;
  /** The value as JSON. */
  readonly value: string;
}

/** Members may be as deep as a payload. */
const MOST_STEPS = 64;
const MOST_ITEMS = 1_000;
/** Before the `=`: somebody means `!=`, `<=` or `>=`. A name that ends so can be written `["odd!"]`. */
const OTHER_OPERATOR = /[!<>]$/;
const INDEX = /^(?:0|[1-9]\d{0,2})$/;

/**
 * Reads `country=FR`, `customer.id=7`, `items[0].sku="A 1"`, `["odd name"].x=true` or `/customer/id=7`: a value is JSON, or else a
 * text. `undefined` for any other text.
 */
function typedMember(text: string): TypedMember | undefined {
  const at = text.indexOf("=");
  const place = text.slice(0, Math.max(0, at));
  const path = place.startsWith("/") ? pathOfPointer(place) : pathNamed(place);
  const isMember = typeof path[0] === "string" && path.length <= MOST_STEPS && !OTHER_OPERATOR.test(place);
  return isMember ? { path, value: jsonOf(text.slice(at + 1)) } : undefined;
}

/** A number in a pointer is a place in a list. A payload is no list itself. */
function pathOfPointer(pointer: string): FieldPath {
  return pointerSteps(pointer).map((step, index) => (index > 0 && INDEX.test(step) ? Number(step) : step));
}

/** What was typed if that is JSON, so that no number is rounded; else that text as a string. */
function jsonOf(text: string): string {
  try {
    JSON.parse(text);
    return text;
  } catch {
    return JSON.stringify(text);
  }
}

/** What a search by members takes. */
export const MEMBER_SEARCH_FORM =
  "takes members such as country=FR, customer.id=7 or /sender/login=ada, each place once";

/**
 * The JSON Schema, as JSON, of the payloads that have all these members; `undefined` where one of them is none, or two are about
 * the same place.
 */
export function memberSearch(typed: readonly string[]): string | undefined {
  const wanted = typed.flatMap((member) => typedMember(member) ?? []);
  return wanted.length < typed.length ? undefined : schemaOf(wanted);
}

/** The schema of a place, with what is wanted in it; `undefined` where that cannot be true together. */
function schemaOf(wanted: readonly TypedMember[]): string | undefined {
  if (wanted.some(({ path }) => path.length === 0)) {
    return wanted.length === 1 ? `{"const":${wanted[0]!.value}}` : undefined;
  }
  const inner = Map.groupBy(wanted, ({ path: [step] }) => step);
  const schemas = [...inner].map(([step, all]) => {
    const within = all.map(({ path, value }) => ({ path: path.slice(1), value }));
    return [step, schemaOf(within)] as const;
  });
  const isList = schemas.every(([step]) => typeof step === "number");
  const isObject = schemas.every(([step]) => typeof step === "string");
  if (isList === isObject || schemas.some(([, schema]) => schema === undefined)) return undefined;
  if (isObject) {
    const named = schemas.map(([name, schema]) => `${JSON.stringify(name)}:${schema}`);
    return `{"type":"object","properties":{${named.join()}},"required":${JSON.stringify([...inner.keys()])}}`;
  }
  const length = Math.max(...schemas.map(([place]) => Number(place))) + 1;
  if (length > MOST_ITEMS) return undefined;
  const items = Array.from({ length }, (_, place) => new Map(schemas).get(place) ?? "{}");
  return `{"type":"array","items":[${items.join()}],"minItems":${length}}`;
}
