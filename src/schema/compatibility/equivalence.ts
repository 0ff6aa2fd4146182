import { isAssertion } from "../keywords.ts";
import { spend } from "../limits.ts";
import { canonicalText } from "../validate/values.ts";
import type { SchemaNode } from "../node.ts";

/** A schema that leads back to itself somewhere. */
interface Recursive {
  readonly node: SchemaNode;
  readonly own: string;
  readonly children: readonly Child[];
}

/**
 * Whether two schemas are written the same, through references and whatever the order of values.
 *
 * Equivalent schemas form a class. A schema without recursion gets its class from those inside it. All others begin as one
 * class, which is split until no schemas of a class differ in the classes inside them.
 */
export class Equivalence {
  readonly #classes = new Map<SchemaNode, number | undefined>();
  readonly #signatures = new Map<string, number>();
  readonly #recursive: Recursive[] = [];

  /** Reads schemas with all there is in them. No other has a class. */
  read(...nodes: readonly SchemaNode[]): void {
    for (const node of nodes) this.#visit(node);
    this.#split();
  }

  check(one: SchemaNode, other: SchemaNode): boolean {
    const same = this.classOf(one);
    return same !== undefined && same === this.classOf(other);
  }

  /** A number that two schemas share exactly when they are equivalent. */
  classOf(node: SchemaNode): number | undefined {
    return this.#classes.get(node.resolved);
  }

  #visit({ resolved: node }: SchemaNode): void {
    if (this.#classes.has(node)) return;
    // A schema that leads back here is recursive.
    this.#classes.set(node, undefined);
    const children = childrenOf(node);
    for (const [, inner] of children) this.#visit(inner);
    spend(4 + (children.length >> 1));
    const own = ownText(node);
    const inside = signatureOf(children, (inner) => this.classOf(inner));
    if (inside === undefined) this.#recursive.push({ node, own, children });
    else this.#classes.set(node, this.#classFor(`${own}${inside}`));
  }

  #split(): void {
    let classes = new Map(this.#recursive.map(({ node }) => [node, 0]));
    const classOf = (node: SchemaNode): number | undefined => {
      const target = node.resolved;
      return classes.get(target) ?? this.#classes.get(target);
    };
    for (let count = 0; ;) {
      const found = new Map<string, number>();
      const split = new Map<SchemaNode, number>();
      for (const { node, own, children } of this.#recursive) {
        spend(2 + (children.length >> 1));
        const signature = `${own}${signatureOf(children, classOf)}`;
        // Below zero: the classes of schemas without recursion are not.
        const number = found.get(signature) ?? -1 - found.size;
        found.set(signature, number);
        split.set(node, number);
      }
      classes = split;
      if (found.size === count) break;
      count = found.size;
    }
    for (const [node, number] of classes) this.#classes.set(node, number);
  }

  #classFor(signature: string): number {
    let found = this.#signatures.get(signature);
    if (found === undefined) {
      found = this.#signatures.size;
      this.#signatures.set(signature, found);
    }
    return found;
  }
}

function assertionText(keyword: string, value: unknown): string {
  return keyword === "type" || keyword === "enum" || keyword === "required"
    ? asSet(value)
    : canonicalText(value);
}

function asSet(values: unknown): string {
  return [...new Set([values].flat().map(canonicalText))].toSorted().join();
}

/** A schema inside another, with its keyword and steps as text. */
type Child = readonly [place: string, SchemaNode];

/** The schemas inside one, in an order that is the same for equivalent ones. */
function childrenOf(node: SchemaNode): Child[] {
  if (typeof node.schema === "boolean" || node.allowsAll) return [];
  return node.subschemas
    .filter(({ looksAt }) => looksAt !== "nothing")
    .map(({ keyword, steps, node: inner }): Child => [JSON.stringify([keyword, ...steps.slice(1)]), inner])
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
}

/** What a schema says without those inside it. */
function ownText(node: SchemaNode): string {
  if (typeof node.schema === "boolean" || node.allowsAll) return String(!node.allowsNone);
  let own = "";
  for (const keyword of node.keywords.toSorted()) {
    own += `;${keyword}`;
    if (isAssertion(keyword)) own += assertionText(keyword, node.value(keyword));
  }
  for (const [name, needed] of node.dependentNames) own += `;${JSON.stringify(name)}>${asSet(needed)}`;
  return own;
}

/** The classes of the schemas inside; `undefined` when one of them has none. */
function signatureOf(
  children: readonly Child[],
  classOf: (inner: SchemaNode) => number | undefined,
): string | undefined {
  let signature = "|";
  for (const [place, inner] of children) {
    const of = classOf(inner);
    if (of === undefined) return undefined;
    signature += `${place}:${of},`;
  }
  return signature;
}
