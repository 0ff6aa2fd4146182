import type { SchemaNode } from "../document.ts";
import type { JsonObject } from "../keywords.ts";
import { childrenOf } from "../node-children.ts";
import { NEVER, UNKNOWN } from "./type-tree.ts";
import type { TypeTree } from "./type-tree.ts";

/** The type of a list, or of a tuple where `items` lists the places. */
export function listType(node: SchemaNode, typeOf: (node: SchemaNode) => TypeTree): TypeTree {
  const schema = node.schema as JsonObject;
  const children = childrenOf(node);
  const places = children.list("items");
  const each = children.one("items");
  if (places.length === 0) return { kind: "list", item: each === undefined ? UNKNOWN : typeOf(each) };
  const least = Number(schema["minItems"] ?? 0);
  const most = Number(schema["maxItems"] ?? Infinity);
  const types = places.slice(0, most).map(typeOf);
  // A place that nothing can take is the end.
  const end = types.indexOf(NEVER);
  const items = (end < 0 ? types : types.slice(0, end)).map((type, index) => ({
    type,
    optional: index >= least,
  }));
  const further = children.one("additionalItems");
  const rest = further === undefined ? UNKNOWN : typeOf(further);
  const ends = end >= 0 || most <= places.length || rest === NEVER;
  return { kind: "tuple", items, rest: ends ? undefined : rest };
}
