import type { SchemaNode } from "./document.ts";

/** The schemas directly inside one, found by keyword and place. */
export interface NodeChildren {
  /** Of a keyword that holds one schema, such as `not`, or `items` with one for all. */
  one(keyword: string): SchemaNode | undefined;
  /** Of a keyword that holds a list, such as `allOf`, or `items` with one for each place. */
  list(keyword: string): readonly SchemaNode[];
  /** Of a keyword that holds a map, such as `properties`. */
  map(keyword: string): ReadonlyMap<string, SchemaNode>;
}

const EMPTY_LIST: readonly SchemaNode[] = [];
const EMPTY_MAP: ReadonlyMap<string, SchemaNode> = new Map();
const known = new WeakMap<SchemaNode, NodeChildren>();

export function childrenOf(node: SchemaNode): NodeChildren {
  let children = known.get(node);
  if (children === undefined) {
    children = sorted(node);
    known.set(node, children);
  }
  return children;
}

function sorted(node: SchemaNode): NodeChildren {
  const ones = new Map<string, SchemaNode>();
  const lists = new Map<string, SchemaNode[]>();
  const maps = new Map<string, Map<string, SchemaNode>>();
  for (const { keyword, steps, node: child } of node.subschemas) {
    const place = steps[1];
    if (place === undefined) ones.set(keyword, child);
    else if (typeof place === "number") entry(lists, keyword, () => [] as SchemaNode[]).push(child);
    else entry(maps, keyword, () => new Map<string, SchemaNode>()).set(place, child);
  }
  return {
    one: (keyword) => ones.get(keyword),
    list: (keyword) => lists.get(keyword) ?? EMPTY_LIST,
    map: (keyword) => maps.get(keyword) ?? EMPTY_MAP,
  };
}

function entry<T>(map: Map<string, T>, key: string, make: () => T): T {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
