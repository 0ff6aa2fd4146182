import { isAssertion } from "../keywords.ts";
import type { Steps } from "../../runtime/yielding.ts";
import { budget, spend } from "../limits.ts";
import { canonicalText } from "../validate/values.ts";
import type { SchemaNode } from "../node.ts";

/** A schema that refers back to itself somewhere, with what it says by itself. */
interface Recursive {
  readonly node: SchemaNode;
  readonly says: string;
  readonly children: readonly Child[];
}

/**
 * Whether two schemas say the same in the same words, through references, the order of lists of values left aside. Equal
 * ones need no proof, and some could not be proven: of a `not` inside a `contains` little else is known.
 *
 * Those that say the same are a class. Schemas without recursion get theirs from the classes inside them; all others begin
 * as one class, which is split until each tells apart no more than the classes inside tell apart.
 */
export class Equivalence {
  readonly #classes = new Map<SchemaNode, number | undefined>();
  readonly #signatures = new Map<string, number>();
  readonly #recursive: Recursive[] = [];

  /** Reads schemas with all there is in them: only what was read is known. */
  *readSteps(...nodes: readonly SchemaNode[]): Steps<void> {
    for (const node of nodes) yield* this.#visiting(node);
    yield* this.#splitting();
  }

  check(one: SchemaNode, other: SchemaNode): boolean {
    const same = this.classOf(one);
    return same !== undefined && same === this.classOf(other);
  }

  /** A number that two schemas share exactly when they say the same. */
  classOf(node: SchemaNode): number | undefined {
    return node.target === undefined ? this.#classes.get(node) : this.classOf(node.target);
  }

  *#visiting(node: SchemaNode): Steps<void> {
    if (node.target !== undefined) {
      yield* this.#visiting(node.target);
      return;
    }
    if (this.#classes.has(node)) return;
    if (budget.shouldYield()) yield;
    // Who comes back here meanwhile is recursive.
    this.#classes.set(node, undefined);
    const children = childrenOf(node);
    for (const [, inner] of children) yield* this.#visiting(inner);
    spend(4 + (children.length >> 1));
    const says = saidBy(node);
    const inside = signatureOf(children, (inner) => this.classOf(inner));
    if (inside === undefined) this.#recursive.push({ node, says, children });
    else this.#classes.set(node, this.#classFor(`${says}${inside}`));
  }

  *#splitting(): Steps<void> {
    let classes = new Map(this.#recursive.map(({ node }) => [node, 0]));
    const classOf = (node: SchemaNode): number | undefined => {
      const target = targetOf(node);
      return classes.get(target) ?? this.#classes.get(target);
    };
    for (let count = 0; ;) {
      const found = new Map<string, number>();
      const split = new Map<SchemaNode, number>();
      for (const { node, says, children } of this.#recursive) {
        if (budget.shouldYield()) yield;
        spend(2 + (children.length >> 1));
        const signature = `${says}${signatureOf(children, classOf)}`;
        // Below zero, so that none is one of the classes without recursion.
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

function targetOf(node: SchemaNode): SchemaNode {
  return node.target === undefined ? node : targetOf(node.target);
}

const ONE_EACH = [
  "not",
  "if",
  "then",
  "else",
  "additionalProperties",
  "propertyNames",
  "items",
  "additionalItems",
  "contains",
] as const;

function assertionText(keyword: string, value: unknown): string {
  return keyword === "type" || keyword === "enum" || keyword === "required"
    ? asSet(value)
    : canonicalText(value);
}

function asSet(values: unknown): string {
  return [...new Set([values].flat().map(canonicalText))].toSorted().join();
}

/** A schema in another, with what leads to it. */
type Child = readonly [location: string, SchemaNode];

/** The schemas in one, in an order that is the same for all that say the same. */
function childrenOf(node: SchemaNode): Child[] {
  if (typeof node.schema === "boolean" || node.allowsAll) return [];
  const children: Child[] = [
    ...[...node.properties].map(([name, inner]): Child => [`.${JSON.stringify(name)}`, inner]),
    ...[...node.patternProperties].map(([name, inner]): Child => [`~${JSON.stringify(name)}`, inner]),
    ...[...node.dependentSchemas].map(([name, inner]): Child => [`>${JSON.stringify(name)}`, inner]),
  ].toSorted(([a], [b]) => (a < b ? -1 : 1));
  for (const keyword of ["allOf", "anyOf", "oneOf", "tuple"] as const) {
    for (const inner of node[keyword] ?? []) children.push([keyword, inner]);
  }
  for (const keyword of ONE_EACH) {
    const inner = node[keyword];
    if (inner !== undefined) children.push([keyword, inner]);
  }
  return children;
}

/** What a schema says by itself. */
function saidBy(node: SchemaNode): string {
  if (typeof node.schema === "boolean" || node.allowsAll) return String(!node.allowsNone);
  let says = "";
  for (const keyword of node.keywords.toSorted()) {
    says += `;${keyword}`;
    if (isAssertion(keyword)) says += assertionText(keyword, node.value(keyword));
  }
  for (const [name, needed] of node.dependentNames) says += `;${JSON.stringify(name)}>${asSet(needed)}`;
  return says;
}

/** The classes of the schemas in one; `undefined` when one of those has none. */
function signatureOf(
  children: readonly Child[],
  classOf: (inner: SchemaNode) => number | undefined,
): string | undefined {
  let signature = "|";
  for (const [location, inner] of children) {
    const of = classOf(inner);
    if (of === undefined) return undefined;
    signature += `${location}:${of},`;
  }
  return signature;
}
