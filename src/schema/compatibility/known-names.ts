import { isObject } from "../keywords.ts";
import { spend } from "../limits.ts";
import type { SchemaNode } from "../node.ts";

/** The `KnownNames` of one document: the same schemas have the same one, and so has each step from it. */
interface Index {
  readonly byNodes: Map<string, KnownNames>;
  readonly bySteps: Map<string, KnownNames>;
}

/**
 * All schemas of the old document that apply at one location of a payload, whichever branch it takes. They tell which names
 * the old document mentions there, and so promises anything about.
 */
export class KnownNames {
  readonly id: number;
  readonly nodes: readonly SchemaNode[];
  readonly #index: Index;

  private constructor(nodes: readonly SchemaNode[], index: Index) {
    this.id = index.byNodes.size;
    this.nodes = nodes;
    this.#index = index;
  }

  /** Those of a whole payload. */
  static of(root: SchemaNode): KnownNames {
    return KnownNames.#of([root], { byNodes: new Map(), bySteps: new Map() });
  }

  static #of(found: readonly SchemaNode[], index: Index): KnownNames {
    const nodes = withInPlace(found);
    const key = nodes
      .map(({ id }) => id)
      .toSorted((a, b) => a - b)
      .join();
    let known = index.byNodes.get(key);
    if (known === undefined) index.byNodes.set(key, (known = new KnownNames(nodes, index)));
    return known;
  }

  member(name: string): KnownNames {
    return this.#step(`.${name}`, (node) => node.memberNodes(name));
  }

  item(index: number): KnownNames {
    return this.#step(`[${index}]`, (node) => [node.itemNode(index) ?? [], node.contains ?? []].flat());
  }

  /** Whether the old document says anything about a member of that name here. */
  mention(name: string): boolean {
    return this.nodes.some((node) => mentions(node, name));
  }

  #step(step: string, inside: (node: SchemaNode) => readonly SchemaNode[]): KnownNames {
    const key = this.id + step;
    let known = this.#index.bySteps.get(key);
    if (known === undefined) {
      this.#index.bySteps.set(key, (known = KnownNames.#of(this.nodes.flatMap(inside), this.#index)));
    }
    return known;
  }
}

/** The schemas, and all within them that apply to the same value. */
function withInPlace(of: readonly SchemaNode[]): SchemaNode[] {
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
  const { additionalProperties, propertyNames } = node;
  return (
    node.properties.has(name) ||
    node.required.includes(name) ||
    node.patternNodes(name).length > 0 ||
    node.dependentSchemas.has(name) ||
    [...node.dependentNames].some(([other, needed]) => other === name || needed.includes(name)) ||
    // `false` forbids every other name; a schema describes them.
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
