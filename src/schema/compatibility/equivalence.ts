import { isAssertion } from "../keywords.ts";
import { spend } from "../limits.ts";
import { canonicalText } from "../validate/values.ts";
import type { SchemaDocument, SchemaNode } from "../node.ts";

/**
 * Whether two schemas are written the same, through references and whatever the order of values.
 *
 * Equivalent schemas form a class. All schemas begin as one class, which is split until no schemas of a class differ in
 * what they say or in the classes inside them.
 */
export class Equivalence {
  #classes: ReadonlyMap<SchemaNode, number> = new Map();

  /** Reads all schemas of some documents. No other has a class. */
  read(...documents: readonly SchemaDocument[]): void {
    const owns = new Map<string, number>();
    const schemas = documents
      .flatMap(({ nodes }) => nodes)
      .filter(({ target }) => target === undefined)
      .map((node) => ({ node, own: numberFor(ownText(node), owns), children: childrenOf(node) }));
    for (let count = 0; ;) {
      const signatures = new Map<string, number>();
      const split = new Map<SchemaNode, number>();
      for (const { node, own, children } of schemas) {
        spend(2 + (children.length >> 1));
        const inside = children.map(([place, inner]) => `${place}:${this.classOf(inner)}`);
        split.set(node, numberFor(`${own}|${inside.join()}`, signatures));
      }
      this.#classes = split;
      if (signatures.size === count) return;
      count = signatures.size;
    }
  }

  check(one: SchemaNode, other: SchemaNode): boolean {
    const same = this.classOf(one);
    return same !== undefined && same === this.classOf(other);
  }

  /** A number that two schemas share exactly when they are equivalent. */
  classOf(node: SchemaNode): number | undefined {
    return this.#classes.get(node.resolved);
  }
}

function numberFor(text: string, numbers: Map<string, number>): number {
  const number = numbers.get(text) ?? numbers.size;
  numbers.set(text, number);
  return number;
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
