import type { SchemaDocument, SchemaNode } from "../document.ts";
import { isObject } from "../keywords.ts";
import { childrenOf } from "../node-children.ts";

/** How many levels the flattest value of a schema has, as far as that can be told; infinite where none ends. */
export type Heights = ReadonlyMap<SchemaNode, number>;

/** Tells a recursive schema's way out: which alternative leads to an end soonest. */
export function heightsOf({ nodes }: SchemaDocument): Heights {
  const heights = new Map<SchemaNode, number>();
  const height = (node: SchemaNode): number => heights.get(node) ?? Infinity;
  // Each round can only lower them, and none needs more rounds than there are levels.
  for (let changed = true; changed;) {
    changed = false;
    for (const node of nodes) {
      const found = heightOf(node, height);
      if (found >= height(node)) continue;
      heights.set(node, found);
      changed = true;
    }
  }
  return heights;
}

function heightOf(node: SchemaNode, height: (node: SchemaNode) => number): number {
  const { schema, target } = node;
  if (!isObject(schema)) return schema ? 0 : Infinity;
  if (target !== undefined) return height(target);
  const children = childrenOf(node);
  let most = ownHeight(node, height);
  for (const child of children.list("allOf")) most = Math.max(most, height(child));
  for (const keyword of ["anyOf", "oneOf"]) {
    const branches = children.list(keyword);
    if (branches.length > 0) most = Math.max(most, Math.min(...branches.map(height)));
  }
  return most;
}

function ownHeight(node: SchemaNode, height: (node: SchemaNode) => number): number {
  const schema = node.schema as Record<string, unknown>;
  const types = [schema["type"] ?? "null"].flat() as string[];
  const heights = types.map((type) => {
    if ("enum" in schema || "const" in schema) return 0;
    if (type === "object") return objectHeight(node, schema, height);
    return type === "array" ? listHeight(node, schema, height) : 0;
  });
  return Math.min(...heights);
}

function objectHeight(
  node: SchemaNode,
  schema: Record<string, unknown>,
  height: (node: SchemaNode) => number,
): number {
  const properties = childrenOf(node).map("properties");
  let most = 0;
  for (const name of (schema["required"] ?? []) as string[]) {
    const property = properties.get(name);
    if (property !== undefined) most = Math.max(most, 1 + height(property));
  }
  return most;
}

function listHeight(
  node: SchemaNode,
  schema: Record<string, unknown>,
  height: (node: SchemaNode) => number,
): number {
  const least = Number(schema["minItems"] ?? 0);
  const children = childrenOf(node);
  const each = children.one("items");
  if (each !== undefined) return least > 0 ? 1 + height(each) : 0;
  return Math.max(
    0,
    ...children
      .list("items")
      .slice(0, least)
      .map((item) => 1 + height(item)),
  );
}
