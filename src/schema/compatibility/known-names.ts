import { isObject } from "../keywords.ts";
import { spend } from "../limits.ts";
import type { SchemaNode } from "../node.ts";

/**
 * All schemas of the old document that look at one location of a payload, whichever way its choices go. They tell which names
 * the old document mentions there, and so promises anything about.
 */
export interface KnownNames {
  readonly id: number;
  readonly nodes: readonly SchemaNode[];
}

export class KnownNamesIndex {
  readonly root: KnownNames;
  readonly #knownNames = new Map<string, KnownNames>();
  readonly #steps = new Map<string, KnownNames>();

  constructor(root: SchemaNode) {
    this.root = this.#known([root]);
  }

  member(known: KnownNames, name: string): KnownNames {
    return this.#step(`${known.id}.${name}`, () => known.nodes.flatMap((node) => node.memberNodes(name)));
  }

  item(known: KnownNames, index: number): KnownNames {
    return this.#step(`${known.id}[${index}]`, () =>
      known.nodes.flatMap((node) => [node.itemNode(index) ?? [], node.contains ?? []].flat()),
    );
  }

  /** Whether the old document says anything about a member of that name here. */
  mentions({ nodes }: KnownNames, name: string): boolean {
    return nodes.some((node) => mentions(node, name));
  }

  #step(key: string, nodes: () => SchemaNode[]): KnownNames {
    let known = this.#steps.get(key);
    if (known === undefined) {
      known = this.#known(nodes());
      this.#steps.set(key, known);
    }
    return known;
  }

  #known(of: readonly SchemaNode[]): KnownNames {
    const nodes = inPlace(of);
    const key = nodes
      .map(({ id }) => id)
      .toSorted((a, b) => a - b)
      .join();
    let known = this.#knownNames.get(key);
    if (known === undefined) {
      known = { id: this.#knownNames.size, nodes };
      this.#knownNames.set(key, known);
    }
    return known;
  }
}

/** The schemas and all within them that look at the same value. */
function inPlace(of: readonly SchemaNode[]): SchemaNode[] {
  const seen = new Set<SchemaNode>();
  const waiting = [...of];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    spend(1);
    if (seen.has(node)) continue;
    seen.add(node);
    if (node.target !== undefined) waiting.push(node.target);
    for (const inner of node.subschemas) if (inner.looksAt === "same") waiting.push(inner.node);
  }
  return [...seen];
}

function mentions(node: SchemaNode, name: string): boolean {
  const { properties, required, additionalProperties, propertyNames } = node;
  const { dependentNames, dependentSchemas } = node;
  return (
    properties.has(name) ||
    required.includes(name) ||
    node.hasPatternFor(name) ||
    dependentSchemas.has(name) ||
    [...dependentNames].some(([other, needed]) => other === name || needed.includes(name)) ||
    // `false` says that no other name may be, a schema says what any other is.
    (additionalProperties !== undefined &&
      !additionalProperties.allowsAll &&
      !additionalProperties.allowsNone) ||
    (propertyNames !== undefined && valuesOf(propertyNames).includes(name)) ||
    valuesOf(node).some((value) => isObject(value) && Object.hasOwn(value, name))
  );
}

function valuesOf(node: SchemaNode): readonly unknown[] {
  const values = (node.value("enum") ?? []) as unknown[];
  return node.keywords.includes("const") ? [...values, node.value("const")] : values;
}
