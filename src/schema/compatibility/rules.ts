import { spend } from "../limits.ts";
import type { TextWanted, TextWitness } from "../patterns/search.ts";
import { INTEGER_FORMATS } from "../validate/formats.ts";
import { isMultipleOf, NUMBER, TYPE, TYPE_BITS, typesNamed } from "../validate/values.ts";
import { type Bounds, boundsOf, integerRange } from "./bounds.ts";
import type { Conjunction } from "./conjunction.ts";
import {
  itemObligation,
  type KeywordRule,
  narrowed,
  type Obligation,
  type Prover,
  type Violation,
} from "./obligation.ts";
import type { SchemaNode } from "../node.ts";
import { branchesNear, typesOf } from "./unions.ts";

/** Whether a keyword holds for a conjunction that has values of the types it is about. */
type Rule = (limit: never, bounds: Bounds, texts: TextWitness) => boolean;

const RULES: Readonly<Record<string, Rule>> = {
  type: (type: unknown, { types }) => (types & ~typesNamed(type)) === 0,
  // Finite values are looked at one by one before any rule; here there are more than an enum lists.
  enum: () => false,
  const: () => false,
  maximum: (limit: number, bounds) => bounds.upper.value <= limit || integersWithin(bounds, -Infinity, limit),
  exclusiveMaximum: (limit: number, { upper }) =>
    upper.exclusive ? upper.value <= limit : upper.value < limit,
  minimum: (limit: number, bounds) => bounds.lower.value >= limit || integersWithin(bounds, limit, Infinity),
  exclusiveMinimum: (limit: number, { lower }) =>
    lower.exclusive ? lower.value >= limit : lower.value > limit,
  multipleOf: (factor: number, { types, factors }) =>
    factors.some((known) => isMultipleOf(known, factor)) ||
    ((types & TYPE.fraction) === 0 && isMultipleOf(1, factor)),
  maxLength: (limit: number, bounds, texts) =>
    bounds.maxLength <= limit || noText(texts, bounds, { minLength: Math.max(bounds.minLength, limit + 1) }),
  minLength: (limit: number, bounds, texts) =>
    bounds.minLength >= limit || noText(texts, bounds, { maxLength: Math.min(bounds.maxLength, limit - 1) }),
  pattern: (pattern: string, bounds, texts) =>
    bounds.patterns.includes(pattern) || noText(texts, bounds, { notMatching: [pattern] }),
  format: (format: string, bounds) => {
    const range = INTEGER_FORMATS.get(format);
    if (range !== undefined) return (bounds.types & NUMBER) === 0 || integersWithin(bounds, ...range);
    return (bounds.types & TYPE.string) === 0 || bounds.formats.includes(format);
  },
  maxItems: (limit: number, { maxItems }) => maxItems <= limit,
  minItems: (limit: number, { minItems }) => minItems >= limit,
  uniqueItems: (_limit, { unique, maxItems }) => unique || maxItems <= 1,
  maxProperties: (limit: number, { maxProperties }) => maxProperties <= limit,
  minProperties: (limit: number, { minProperties }) => minProperties >= limit,
};

export function scalarRule(keyword: string): KeywordRule | undefined {
  const rule = RULES[keyword];
  if (rule === undefined) return undefined;
  return {
    keyword,
    holds: ({ left, right }, { texts }) => rule(right.value(keyword) as never, boundsOf(left), texts),
  };
}

/** Whether all values are integers within the range: they do not reach a bound between two integers. */
function integersWithin(bounds: Bounds, lowest: number, highest: number): boolean {
  if ((bounds.types & TYPE.fraction) !== 0) return false;
  const [first, last] = integerRange(bounds);
  return last <= highest && first >= lowest;
}

/** Whether no text of the conjunction is such. */
function noText(
  texts: TextWitness,
  { patterns, minLength, maxLength }: Bounds,
  such: Partial<TextWanted>,
): boolean {
  if (patterns.length === 0 && such.notMatching === undefined) return false;
  const wanted = { matching: patterns, notMatching: [], minLength, maxLength, ...such };
  return texts.find(wanted) === "none";
}

/** What a schema says about lists: the indexes that some schema distinguishes, and all that come after them. */
export function* listRules(right: SchemaNode): Generator<KeywordRule> {
  if (right.keywords.includes("items")) {
    if (right.tuple === undefined) yield { keyword: "items", holds: indexesHold(0, Infinity) };
    for (const index of right.tuple?.keys() ?? []) {
      yield { keyword: "items", member: index, holds: indexesHold(index, index + 1) };
    }
  }
  if (right.keywords.includes("additionalItems")) {
    yield { keyword: "additionalItems", holds: indexesHold(right.tuple!.length, Infinity) };
  }
  if (right.contains !== undefined) yield { keyword: "contains", holds: containsOne };
}

function indexesHold(from: number, to: number): KeywordRule["holds"] {
  return function (obligation, prover) {
    const { left, right } = obligation;
    const { maxItems } = boundsOf(left);
    // One index after the last that any schema distinguishes stands for all the rest.
    const nodes = [...left.nodes, ...obligation.known.nodes];
    const last = Math.max(from, ...nodes.map(({ tuple }) => tuple?.length ?? 0));
    const end = Math.min(to, last + 1, maxItems);
    for (let index = from; index < end; index++) {
      if (!prover.prove(itemObligation(obligation, index, right.itemNode(index)!))) return false;
    }
    return true;
  };
}

/** Any other item that a list contains may be at any index, of which too little is known. */
function containsOne({ left, right }: Obligation, { equivalence }: Prover): boolean {
  return left.nodes.some(
    ({ contains }) => contains !== undefined && equivalence.check(contains, right.contains!),
  );
}

/** What a schema says by combining others. */
export function* unionRules(right: SchemaNode): Generator<KeywordRule> {
  for (const [index, inner] of right.allOf.entries()) {
    const holds: KeywordRule["holds"] = (around, prover) => prover.prove({ ...around, right: inner });
    yield { keyword: "allOf", member: index, holds };
  }
  for (const keyword of ["anyOf", "oneOf"] as const) {
    const branches = right[keyword];
    if (branches.length === 0) continue;
    const holds: KeywordRule["holds"] = (obligation, prover) =>
      oneHolds(obligation, prover, branches, keyword === "oneOf");
    yield { keyword, holds };
  }
  if (right.not !== undefined) {
    yield { keyword: "not", holds: (obligation, prover) => isExcluded(obligation, prover, right.not!) };
  }
  if (right.keywords.includes("if")) yield { keyword: "if", holds: conditionHolds };
}

/** Whether no value of the conjunction conforms to the schema. */
function isExcluded(obligation: Obligation, prover: Prover, right: SchemaNode): boolean {
  return prover.isEmpty(obligation.left.with({ nodes: [right] }), obligation);
}

function areExcluded(obligation: Obligation, prover: Prover, branches: readonly SchemaNode[]): boolean {
  for (const branch of branches) if (!isExcluded(obligation, prover, branch)) return false;
  return true;
}

function oneHolds(
  obligation: Obligation,
  prover: Prover,
  branches: readonly SchemaNode[],
  only: boolean,
): boolean {
  const { left } = obligation;
  spend(branches.length);
  const near = left.nodes.reduce(branchesNear, branches);
  const tried: Violation[][] = [];
  for (const { branch, isReported } of candidates(left, branches, near)) {
    const violations: Violation[] = [];
    const firstOnly = obligation.firstOnly || !isReported;
    const holds = prover.prove({ ...obligation, right: branch, firstOnly, violations });
    const others = only ? near.filter((other) => other !== branch) : [];
    if (holds && areExcluded(obligation, prover, others)) return true;
    if (isReported) tried.push(violations);
  }
  const { types } = boundsOf(left);
  const bits = TYPE_BITS.filter((bit) => (bit & types) !== 0);
  if (bits.length > 1) {
    // Each type may match another branch.
    for (const bit of bits) {
      const fewer = narrowed(obligation, left.with({ types: bit }));
      if (!oneHolds(fewer, prover, branches, only)) return false;
    }
    return true;
  }
  obligation.violations.push(...(tried[0] ?? []));
  return false;
}

interface BranchCandidate {
  readonly branch: SchemaNode;
  /** Whether its violations are reported if no branch holds: it is at the same pointer, or the only one. */
  readonly isReported: boolean;
}

/** First the branches at the same pointer, then all others. */
function candidates(
  { nodes, types }: Conjunction,
  branches: readonly SchemaNode[],
  near: readonly SchemaNode[],
): BranchCandidate[] {
  const reported = new Set(
    nodes
      .flatMap(({ pointer }) => branches.find((branch) => standsAt(branch, pointer)) ?? [])
      .filter((branch) => (typesOf(branch) & types) !== 0),
  );
  const others = near.filter((branch) => !reported.has(branch));
  const isOnly = reported.size === 0 && others.length === 1;
  return [
    ...[...reported].map((branch) => ({ branch, isReported: true })),
    ...others.map((branch) => ({ branch, isReported: isOnly })),
  ];
}

/** Whether the branch is at that place, or refers to what is. */
function standsAt({ pointer, target }: SchemaNode, place: string): boolean {
  return pointer === place || target?.pointer === place;
}

function conditionHolds(obligation: Obligation, prover: Prover): boolean {
  const { left, right } = obligation;
  const { if: condition, then, else: otherwise } = right;
  const met = narrowed(obligation, left.with({ nodes: [condition!] }));
  const unmet = narrowed(obligation, left.with({ negated: [condition!] }));
  const first = wayHolds(met, prover, then);
  const second = wayHolds(unmet, prover, otherwise);
  return first && second;
}

function wayHolds(obligation: Obligation, prover: Prover, right: SchemaNode | undefined): boolean {
  if (right === undefined || prover.isEmpty(obligation.left, obligation)) return true;
  return prover.prove({ ...obligation, right });
}
