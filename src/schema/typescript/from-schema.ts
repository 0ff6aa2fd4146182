import type { SchemaNode } from "../document.ts";
import { isObject } from "../keywords.ts";
import type { JsonObject } from "../keywords.ts";
import { childrenOf } from "../node-children.ts";
import { literalOf } from "./literals.ts";
import { listType } from "./list-type.ts";
import { objectType } from "./object-type.ts";
import { intersectionOf, NEVER, unionOf, UNKNOWN, word } from "./type-tree.ts";
import type { TypeTree } from "./type-tree.ts";

/** What a schema without a type is about, told by the keywords that shape the type of TypeScript. */
const SHAPING: readonly (readonly [type: string, keywords: readonly string[]])[] = [
  ["object", ["properties", "required", "patternProperties", "additionalProperties"]],
  ["array", ["items", "additionalItems"]],
];

/**
 * The type of what a schema allows. It is never narrower than the schema, save that a schema without `type` is taken to
 * mean what its keywords are about: one with `properties` an object, one with `items` a list.
 *
 * `not`, `contains`, `propertyNames`, `dependencies` and all bounds, lengths, patterns and formats have no counterpart.
 */
export function typeOfSchema(node: SchemaNode): TypeTree {
  return typeOf(node, undefined);
}

/** The same for a payload's schema: a payload is an object, whatever else its schema would allow. */
export function typeOfPayload(node: SchemaNode): TypeTree {
  return typeOf(node, ["object"]);
}

/** @param context types the value has by what stands around the schema */
function typeOf(node: SchemaNode, context: readonly string[] | undefined): TypeTree {
  const { schema, target } = node;
  if (!isObject(schema)) return schema ? UNKNOWN : NEVER;
  if (target !== undefined) return { kind: "reference", to: target };
  const children = childrenOf(node);
  const stated = schema["type"] === undefined ? undefined : ([schema["type"]].flat() as string[]);
  const types = stated?.filter((type) => context === undefined || allows(context, type)) ?? context;
  const at = (child: SchemaNode): TypeTree => typeOf(child, types);
  const parts = [ownType(node, schema, types, stated !== undefined), ...children.list("allOf").map(at)];
  for (const keyword of ["anyOf", "oneOf"]) {
    const branches = children.list(keyword);
    if (branches.length > 0) parts.push(unionOf(branches.map(at)));
  }
  const condition = children.one("if");
  const [then, otherwise] = [children.one("then"), children.one("else")];
  if (condition !== undefined && then !== undefined && otherwise !== undefined) {
    parts.push(unionOf([intersectionOf([at(condition), at(then)]), at(otherwise)]));
  }
  return intersectionOf(parts);
}

function ownType(
  node: SchemaNode,
  schema: JsonObject,
  types: readonly string[] | undefined,
  isStated: boolean,
): TypeTree {
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
  // What is known from around it need not be said again.
  if (!isStated && node.pointer !== "" && hinted.length === 0) return UNKNOWN;
  return unionOf(types.map((type) => shapeOf(type, node)));
}

function shapeOf(type: string, node: SchemaNode): TypeTree {
  switch (type) {
    case "object":
      return objectType(node, typeOfSchema);
    case "array":
      return listType(node, typeOfSchema);
    case "integer":
      return NUMBER;
    case "number":
      return NUMBER;
    default:
      return word(type);
  }
}

const NUMBER = word("number");

function allows(types: readonly string[], type: string): boolean {
  if (types.includes(type)) return true;
  return (type === "integer" && types.includes("number")) || (type === "number" && types.includes("integer"));
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
