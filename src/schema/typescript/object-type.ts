import type { SchemaNode } from "../document.ts";
import { isObject } from "../keywords.ts";
import type { JsonObject } from "../keywords.ts";
import { childrenOf } from "../node-children.ts";
import { ANY_OBJECT, NEVER, sizeOf, unionOf, UNKNOWN, word } from "./type-tree.ts";
import type { TypeMember, TypeTree } from "./type-tree.ts";

const UNDEFINED = word("undefined");
/** Types within the type of an index signature. */
const LARGEST_INDEX = 256;

/**
 * The type of an object. One that is open because nothing is said of other names has no index signature: a slip in a name
 * should be an error, and an object with more members is assignable all the same.
 */
export function objectType(node: SchemaNode, typeOf: (node: SchemaNode) => TypeTree): TypeTree {
  const schema = node.schema as JsonObject;
  const children = childrenOf(node);
  const properties = children.map("properties");
  const required = new Set((schema["required"] ?? []) as string[]);
  const others = otherNames(node, typeOf);
  const members: TypeMember[] = [...properties].map(([name, property]) => ({
    name,
    type: typeOf(property),
    optional: !required.has(name),
    comment: aboutSchema(property.schema),
  }));
  for (const name of required) {
    if (!properties.has(name)) members.push({ name, type: others ?? UNKNOWN, optional: false, comment: [] });
  }
  if (members.length === 0) {
    return others === undefined || others === UNKNOWN
      ? ANY_OBJECT
      : { kind: "object", members, index: others };
  }
  return { kind: "object", members, index: indexFor(others, members) };
}

/** What the schema says of names it does not list; `undefined` where it says nothing. */
function otherNames(node: SchemaNode, typeOf: (node: SchemaNode) => TypeTree): TypeTree | undefined {
  const children = childrenOf(node);
  const patterns = [...children.map("patternProperties").values()];
  const additional = children.one("additionalProperties");
  if (additional === undefined) return patterns.length > 0 ? UNKNOWN : undefined;
  return unionOf([...patterns, additional].map(typeOf));
}

/**
 * TypeScript asks that an index signature takes in every member as well. That writes the members' types twice, those inside
 * them four times and so on; where it would be too much, the other names may be anything.
 */
function indexFor(others: TypeTree | undefined, members: readonly TypeMember[]): TypeTree | undefined {
  if (others === undefined || others === NEVER) return undefined;
  const optional = members.some((member) => member.optional);
  const taken = [others, ...members.map(({ type }) => type), ...(optional ? [UNDEFINED] : [])];
  const words = new Set(taken.map((type) => (type.kind === "word" ? type.text : type)));
  const size = [...words].reduce((sum, type) => sum + (typeof type === "string" ? 1 : sizeOf(type)), 0);
  return size > LARGEST_INDEX ? UNKNOWN : unionOf(taken);
}

/** What a schema says about itself, as lines of a comment. */
export function aboutSchema(schema: JsonObject | boolean): string[] {
  if (!isObject(schema)) return [];
  const { title, description } = schema;
  const lines = [title, description].filter(
    (text) => typeof text === "string" && text.trim() !== "",
  ) as string[];
  return lines.length === 2 && lines[0] === lines[1] ? lines.slice(1) : lines;
}
