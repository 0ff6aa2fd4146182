import { isObject, type JsonObject } from "../keywords.ts";
import type { SchemaNode } from "../node.ts";
import { scalarLiteral } from "./literals.ts";
import {
  ANY_OBJECT,
  intersectionOf,
  isNever,
  isUnknown,
  listOf,
  NEVER,
  objectOf,
  tupleOf,
  type TypeMember,
  type TypeText,
  unionOf,
  UNKNOWN,
  wordOf,
} from "./type-text.ts";

/** The type that a schema without `type` is about, by the keywords that matter to TypeScript. */
const SHAPING: readonly (readonly [type: string, keywords: readonly string[]])[] = [
  ["object", ["properties", "required", "patternProperties", "additionalProperties"]],
  ["array", ["items", "additionalItems"]],
];

/** Stands in a type for the name of a schema that others refer to. No text of a schema has this character. */
const MARK = /\0(\d+)\0/g;

/** The ids of the schemas that a type refers to. */
export function referencesIn({ text }: TypeText): readonly number[] {
  return Array.from(text.matchAll(MARK), ([, id]) => Number(id));
}

/** The text of a type, with the names of the schemas that it refers to. */
export function withNames({ text }: TypeText, nameOf: (id: number) => string): string {
  return text.replaceAll(MARK, (_mark, id) => nameOf(Number(id)));
}

/**
 * The type of what a schema allows, or a wider one. But a schema without `type` means what its keywords are about: one with
 * `properties` an object, one with `items` a list.
 */
export function typeOfSchema(node: SchemaNode): TypeText {
  return typeOf(node, undefined);
}

/** The type of a payload: a payload is an object, whatever else its schema would allow. */
export function typeOfPayload(node: SchemaNode): TypeText {
  return typeOf(node, ["object"]);
}

/** @param context types the value has by what stands around the schema */
function typeOf(node: SchemaNode, context: readonly string[] | undefined): TypeText {
  const { schema, target } = node;
  if (!isObject(schema)) return schema ? UNKNOWN : NEVER;
  if (target !== undefined) return wordOf(`\0${target.id}\0`);
  const stated = schema["type"] === undefined ? undefined : ([schema["type"]].flat() as string[]);
  const types = stated?.filter((type) => context === undefined || allows(context, type)) ?? context;
  const at = (child: SchemaNode): TypeText => typeOf(child, types);
  const parts = [ownType(node, schema, types, stated !== undefined), ...node.allOf.map(at)];
  for (const branches of [node.anyOf, node.oneOf]) {
    if (branches.length > 0) parts.push(unionOf(branches.map(at)));
  }
  if (node.if !== undefined && node.then !== undefined && node.else !== undefined) {
    parts.push(unionOf([intersectionOf([at(node.if), at(node.then)]), at(node.else)]));
  }
  return intersectionOf(parts);
}

function ownType(
  node: SchemaNode,
  schema: JsonObject,
  types: readonly string[] | undefined,
  isStated: boolean,
): TypeText {
  const values = "const" in schema ? [schema["const"]] : schema["enum"];
  if (Array.isArray(values)) {
    const possible = (values as unknown[]).filter(
      (value) => types === undefined || allows(types, typeName(value)),
    );
    return unionOf(possible.map(literalOf));
  }
  const hinted = SHAPING.filter(([, keywords]) => keywords.some((keyword) => keyword in schema));
  if (types === undefined) {
    return hinted.length === 0 ? UNKNOWN : unionOf(hinted.map(([type]) => shapeOf(type, node)));
  }
  // What is known from the schemas around it need not be repeated.
  if (!isStated && node.pointer !== "" && hinted.length === 0) return UNKNOWN;
  return unionOf(types.map((type) => shapeOf(type, node)));
}

function shapeOf(type: string, node: SchemaNode): TypeText {
  switch (type) {
    case "object":
      return objectType(node);
    case "array":
      return listType(node);
    case "integer":
    case "number":
      return NUMBER;
    default:
      return wordOf(type);
  }
}

const NUMBER = wordOf("number");

function allows(types: readonly string[], type: string): boolean {
  if (types.includes(type)) return true;
  return (type === "integer" && types.includes("number")) || (type === "number" && types.includes("integer"));
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** An object that is open has no index signature: a misspelt name is an error, and more members are assignable anyway. */
function objectType(node: SchemaNode): TypeText {
  const schema = node.schema as JsonObject;
  const properties = node.properties;
  const required = new Set((schema["required"] ?? []) as string[]);
  const others = otherNames(node);
  const members: TypeMember[] = [...properties].map(([name, property]) => ({
    name,
    type: typeOfSchema(property),
    optional: !required.has(name),
    comment: aboutSchema(property.schema),
  }));
  for (const name of required) {
    if (!properties.has(name)) members.push({ name, type: others ?? UNKNOWN, optional: false, comment: [] });
  }
  if (members.length === 0) {
    return others === undefined || isUnknown(others) ? ANY_OBJECT : objectOf([], others);
  }
  // An index signature must include the types of all members.
  return objectOf(members, others === undefined || isNever(others) ? undefined : UNKNOWN);
}

/** The type of members that the schema does not list; `undefined` where nothing is known of them. */
function otherNames(node: SchemaNode): TypeText | undefined {
  const patterns = [...node.patternProperties.values()];
  const additional = node.additionalProperties;
  if (additional === undefined) return patterns.length > 0 ? UNKNOWN : undefined;
  return unionOf([...patterns, additional].map(typeOfSchema));
}

/** Title and description of a schema, as lines of a comment. */
export function aboutSchema(schema: JsonObject | boolean): string[] {
  if (!isObject(schema)) return [];
  const { title, description } = schema;
  const lines = [title, description].filter(
    (text) => typeof text === "string" && text.trim() !== "",
  ) as string[];
  return lines.length === 2 && lines[0] === lines[1] ? lines.slice(1) : lines;
}

/** The type of a list, or of a tuple where `items` lists the places. */
function listType(node: SchemaNode): TypeText {
  const schema = node.schema as JsonObject;
  const places = node.tuple ?? [];
  const each = node.items;
  if (places.length === 0) return listOf(each === undefined ? UNKNOWN : typeOfSchema(each));
  const min = Number(schema["minItems"] ?? 0);
  const max = Number(schema["maxItems"] ?? Infinity);
  const types = places.slice(0, max).map(typeOfSchema);
  // A place that nothing can take is the end.
  const end = types.findIndex(isNever);
  const items = (end < 0 ? types : types.slice(0, end)).map((type, index) => ({
    type,
    optional: index >= min,
  }));
  const further = node.additionalItems;
  const rest = further === undefined ? UNKNOWN : typeOfSchema(further);
  const ends = end >= 0 || max <= places.length || isNever(rest);
  return tupleOf(items, ends ? undefined : rest);
}

/** The type that only one value of JSON has. */
function literalOf(value: unknown): TypeText {
  if (Array.isArray(value)) {
    const items = (value as unknown[]).map((item) => ({ type: literalOf(item), optional: false }));
    return tupleOf(items, undefined);
  }
  if (isObject(value)) {
    const members = Object.entries(value).map(([name, member]) => ({
      name,
      type: literalOf(member),
      optional: false,
      comment: [],
    }));
    return objectOf(members, members.length === 0 ? NEVER : undefined);
  }
  return wordOf(scalarLiteral(value as string | number | boolean | null) ?? "number");
}
