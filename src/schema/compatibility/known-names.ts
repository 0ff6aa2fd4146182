import { isObject } from "../keywords.ts";
import { spend } from "../limits.ts";
import type { SchemaNode } from "../node.ts";

/** All schemas of the old document that apply at one location of a payload, and so the names that it mentions there. */
export class KnownNames {
  readonly id: number;
  readonly nodes: readonly SchemaNode[];
  /** All of one document, by their schemas and by the steps to them. */
  readonly #index: Map<string, KnownNames>;

  private constructor(nodes: readonly SchemaNode[], index: Map<string, KnownNames>) {
    this.id = index.size;
    this.nodes = nodes;
    this.#index = index;
  }

  static of(root: SchemaNode): KnownNames {
    return KnownNames.#of([root], new Map());
  }

  static #of(roots: readonly SchemaNode[], index: Map<string, KnownNames>): KnownNames {
    const nodes = withInPlace(roots);
    const key = nodes
      .map(({ id }) => id)
      .toSorted((a, b) => a - b)
      .join();
    let known = index.get(key);
    if (known === undefined) index.set(key, (known = new KnownNames(nodes, index)));
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
    let known = this.#index.get(key);
    if (known === undefined) {
      known = KnownNames.#of(this.nodes.flatMap(inside), this.#index);
      this.#index.set(key, known);
    }
    return known;
  }
}

/** The schemas, and all within them that apply to the same value. */
function withInPlace(roots: readonly SchemaNode[]): SchemaNode[] {
  const seen = new Set<SchemaNode>();
  const waiting = [...roots];
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
