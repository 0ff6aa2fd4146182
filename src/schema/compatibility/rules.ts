import { spend } from "../limits.ts";
import type { TextWitness } from "../patterns/search.ts";
import { INTEGER_FORMATS } from "../validate/formats.ts";
import { isMultipleOf, NUMBER, TYPE, TYPE_BITS, typesNamed } from "../validate/values.ts";
import { type Bounds, boundsOf, integerRange } from "./bounds.ts";
import { Conjunction } from "./conjunction.ts";
import type { Violation, Obligation, KeywordRule, Prover, Proof } from "./obligation.ts";
import type { SchemaNode } from "../node.ts";
import { type Branches, branchesOf, areDisjoint, typesOf } from "./unions.ts";

type Rule = (limit: unknown, bounds: Bounds, texts: TextWitness) => boolean | Proof;

/** A keyword that only looks at values of some types: it holds where the case has none of these. */
const about =
  (types: number, rule: Rule): Rule =>
  (limit, bounds, texts) =>
    (bounds.types & types) === 0 || rule(limit, bounds, texts);

const RULES: Readonly<Record<string, Rule>> = {
  type: (type, { types }) => (types & ~typesNamed(type)) === 0,
  // Where the values are listed each is looked at; elsewhere there are more than any list has.
  enum: () => false,
  const: () => false,
  maximum: about(
    NUMBER,
    (limit, bounds) => bounds.upper.value <= (limit as number) || integersWithin(bounds, -Infinity, limit),
  ),
  exclusiveMaximum: about(NUMBER, (limit, { upper }) =>
    upper.exclusive ? upper.value <= (limit as number) : upper.value < (limit as number),
  ),
  minimum: about(
    NUMBER,
    (limit, bounds) => bounds.lower.value >= (limit as number) || integersWithin(bounds, limit, Infinity),
  ),
  exclusiveMinimum: about(NUMBER, (limit, { lower }) =>
    lower.exclusive ? lower.value >= (limit as number) : lower.value > (limit as number),
  ),
  multipleOf: about(
    NUMBER,
    (factor, { types, factors }) =>
      factors.some((known) => isMultipleOf(known, factor as number)) ||
      ((types & TYPE.fraction) === 0 && isMultipleOf(1, factor as number)),
  ),
  maxLength: about(
    TYPE.string,
    (limit, bounds, texts) =>
      bounds.maxLength <= (limit as number) ||
      noText(texts, bounds, { minLength: Math.max(bounds.minLength, (limit as number) + 1) }),
  ),
  minLength: about(
    TYPE.string,
    (limit, bounds, texts) =>
      bounds.minLength >= (limit as number) ||
      noText(texts, bounds, { maxLength: Math.min(bounds.maxLength, (limit as number) - 1) }),
  ),
  pattern: about(
    TYPE.string,
    (pattern, bounds, texts) =>
      bounds.patterns.includes(pattern as string) ||
      noText(texts, bounds, { notMatching: [pattern as string] }),
  ),
  format: (format, bounds) => {
    const range = INTEGER_FORMATS.get(String(format));
    if (range !== undefined) return (bounds.types & NUMBER) === 0 || integersWithin(bounds, ...range);
    if ((bounds.types & TYPE.string) === 0) return true;
    return bounds.formats.some(
      (known) => known === format || WIDER_FORMATS.get(known)?.includes(String(format)) === true,
    );
  },
  maxItems: about(TYPE.array, (limit, bounds) => bounds.maxItems <= (limit as number)),
  minItems: about(TYPE.array, (limit, bounds) => bounds.minItems >= (limit as number)),
  uniqueItems: about(TYPE.array, (_limit, bounds) => bounds.unique || bounds.maxItems <= 1),
  maxProperties: about(TYPE.object, (limit, bounds) => bounds.maxProperties <= (limit as number)),
  minProperties: about(TYPE.object, (limit, bounds) => bounds.minProperties >= (limit as number)),
};

export function scalarRule(keyword: string): KeywordRule | undefined {
  const rule = RULES[keyword];
  if (rule === undefined) return undefined;
  return {
    keyword,
    holds: ({ left, right }, { texts }) => rule(right.value(keyword), boundsOf(left), texts),
  };
}

/** Whole numbers do not reach a bound between two of them. */
function integersWithin(bounds: Bounds, lowest: unknown, highest: unknown): boolean {
  if ((bounds.types & TYPE.fraction) !== 0) return false;
  const [first, last] = integerRange(bounds);
  return last <= (highest as number) && first >= (lowest as number);
}

/** Whether no text of the case is one such. */
function* noText(
  texts: TextWitness,
  { patterns, minLength, maxLength }: Bounds,
  such: { notMatching?: string[]; minLength?: number; maxLength?: number },
): Proof {
  if (patterns.length === 0 && such.notMatching === undefined) return false;
  const wanted = { matching: patterns, notMatching: [], minLength, maxLength, ...such };
  return (yield* texts.find(wanted)) === "none";
}
/** Formats all of whose texts conform to others as well, as both are checked here. */
export const WIDER_FORMATS: ReadonlyMap<string, readonly string[]> = new Map([
  ["time", ["iso-time"]],
  ["date-time", ["iso-date-time"]],
  ["uri", ["uri-reference", "uri-template", "iri", "iri-reference"]],
  ["uri-reference", ["uri-template", "iri-reference"]],
  ["iri", ["iri-reference", "uri-template"]],
  ["iri-reference", ["uri-template"]],
  ["json-pointer-uri-fragment", ["uri-reference", "uri-template", "iri-reference"]],
  ["hostname", ["idn-hostname", "uri-reference", "uri-template", "iri-reference"]],
  ["ipv4", ["hostname", "idn-hostname", "uri-reference", "uri-template", "iri-reference"]],
  ["uuid", ["uri-reference", "uri-template", "iri-reference"]],
  ["date", ["uri-reference", "uri-template", "iri-reference"]],
]);

/** What a schema says about lists: the places told apart by some schema, and all that come after them. */
export function* listRules(right: SchemaNode): Generator<KeywordRule> {
  if (right.keywords.includes("items")) {
    if (right.tuple === undefined) yield { keyword: "items", holds: placesHold(0, Infinity) };
    for (const index of right.tuple?.keys() ?? []) {
      yield { keyword: "items", member: index, holds: placesHold(index, index + 1) };
    }
  }
  if (right.keywords.includes("additionalItems")) {
    yield { keyword: "additionalItems", holds: placesHold(right.tuple!.length, Infinity) };
  }
  if (right.contains !== undefined) yield { keyword: "contains", holds: containsOne };
}

function placesHold(from: number, to: number): KeywordRule["holds"] {
  return function* (obligation, prover) {
    const { left, right } = obligation;
    const { types, maxItems } = boundsOf(left);
    if ((types & TYPE.array) === 0) return true;
    // One location after the last that any schema tells apart stands for all the rest.
    const looking = [...left.nodes, ...obligation.known.nodes];
    const told = Math.max(from, ...looking.map(({ tuple }) => tuple?.length ?? 0));
    const end = Math.min(to, told + 1, maxItems);
    for (let index = from; index < end; index++) {
      if (!(yield* prover.prove(prover.item(obligation, index, right.itemNode(index)!)))) return false;
    }
    return true;
  };
}

const MAX_PLACES_TRIED = 8;

/** Some item must be shown to be one, whatever the list: one the left side asks for too, or the first where all are. */
function* containsOne(obligation: Obligation, prover: Prover): Proof {
  const { left, right } = obligation;
  const { types, minItems } = boundsOf(left);
  if ((types & TYPE.array) === 0) return true;
  const inner = right.contains!;
  const tried = (one: Obligation): Proof => prover.prove({ ...one, violations: [] });
  for (let index = 0; index < Math.min(minItems, MAX_PLACES_TRIED); index++) {
    if (yield* tried(prover.item(obligation, index, inner))) return true;
  }
  // It may stand anywhere, so only what holds at every location is known of it.
  const everywhere = left.nodes.flatMap(({ items }) => items ?? []);
  const strict = obligation.strict || obligation.known.nodes.some(({ tuple }) => tuple !== undefined);
  for (const { contains } of left.nodes) {
    if (contains === undefined) continue;
    const one = new Conjunction({ nodes: [contains, ...everywhere] });
    if (yield* tried(prover.item({ ...obligation, strict }, 0, inner, one))) return true;
  }
  return false;
}

/** What a schema says by combining others. */
export function* unionRules(right: SchemaNode): Generator<KeywordRule> {
  for (const [index, inner] of right.allOf.entries()) {
    yield {
      keyword: "allOf",
      member: index,
      holds: (obligation, prover) => prover.prove({ ...obligation, right: inner }),
    };
  }
  for (const keyword of ["anyOf", "oneOf"] as const) {
    if (right[keyword].length === 0) continue;
    const branches = branchesOf(right, keyword);
    const additions: Additions = new Map();
    const holds: KeywordRule["holds"] = function* (obligation, prover) {
      return (
        (yield* areKept(obligation, prover, branches.list, keyword, additions)) ||
        (yield* oneHolds(obligation, prover, branches, keyword === "oneOf"))
      );
    };
    yield { keyword, branches, holds };
  }
  if (right.not !== undefined) {
    yield { keyword: "not", holds: (obligation, prover) => isExcluded(obligation, prover, right.not!) };
  }
  if (right.keywords.includes("if")) yield { keyword: "if", holds: conditionHolds };
}

/** Whether no value of the case conforms to the schema. */
function* isExcluded(obligation: Obligation, prover: Prover, right: SchemaNode): Proof {
  if (
    prover.refuses(obligation.left, right) ||
    obligation.left.nodes.some((node) => areDisjoint(node, right))
  )
    return true;
  return yield* prover.isEmpty(obligation.left.with({ nodes: [right] }), obligation);
}

function* areExcluded(obligation: Obligation, prover: Prover, branches: readonly SchemaNode[]): Proof {
  for (const branch of branches) if (!(yield* isExcluded(obligation, prover, branch))) return false;
  return true;
}

/** By branches there were before, what there is beside them: each way of a choice asks for it again. */
type Additions = Map<readonly SchemaNode[], readonly SchemaNode[] | undefined>;

/**
 * Whether a schema of the case has all its branches here again, word for word: then one of them holds. Of a `oneOf` no
 * other may hold then.
 */
function* areKept(
  obligation: Obligation,
  prover: Prover,
  branches: readonly SchemaNode[],
  keyword: "anyOf" | "oneOf",
  additions: Additions,
): Proof {
  for (const { anyOf, oneOf } of obligation.left.nodes) {
    for (const kept of keyword === "anyOf" ? [anyOf, oneOf] : [oneOf]) {
      if (kept.length === 0) continue;
      if (!additions.has(kept)) additions.set(kept, addedTo(kept, branches, prover));
      const added = additions.get(kept);
      if (added === undefined) continue;
      if (keyword === "anyOf" || (yield* areExcluded(obligation, prover, added))) return true;
    }
  }
  return false;
}

/** What there is beside the branches that were there before; `undefined` where one of those is not. */
function addedTo(
  kept: readonly SchemaNode[],
  branches: readonly SchemaNode[],
  prover: Prover,
): SchemaNode[] | undefined {
  spend(kept.length + branches.length);
  const before = new Map<number | undefined, number>();
  for (const branch of kept)
    before.set(prover.classOf(branch), (before.get(prover.classOf(branch)) ?? 0) + 1);
  const added: SchemaNode[] = [];
  let found = 0;
  for (const branch of branches) {
    const of = prover.classOf(branch);
    const left = of === undefined ? 0 : (before.get(of) ?? 0);
    if (left === 0) {
      added.push(branch);
      continue;
    }
    before.set(of, left - 1);
    found += 1;
  }
  return found === kept.length ? added : undefined;
}

function* oneHolds(obligation: Obligation, prover: Prover, branches: Branches, only: boolean): Proof {
  const { left } = obligation;
  const near = yield* prover.overlapping(left, branches);
  const tried: Violation[][] = [];
  for (const { branch, meant } of candidates(left, branches, near, prover)) {
    const violations: Violation[] = [];
    const holds = yield* prover.prove({
      ...obligation,
      right: branch,
      firstOnly: obligation.firstOnly || !meant,
      violations,
    });
    const others = only ? near.filter((other) => other !== branch) : [];
    if (holds && (yield* areExcluded(obligation, prover, others))) return true;
    if (meant) tried.push(violations);
  }
  const { types } = boundsOf(left);
  const bits = TYPE_BITS.filter((bit) => (bit & types) !== 0);
  if (bits.length > 1) {
    // Each type may go its own way.
    for (const bit of bits) {
      const narrowed = within(obligation, left.with({ types: bit }));
      if (!(yield* oneHolds(narrowed, prover, branches, only))) return false;
    }
    return true;
  }
  obligation.violations.push(...(tried[0] ?? []));
  return false;
}

function within(obligation: Obligation, left: Conjunction): Obligation {
  return { ...obligation, left, location: { ...obligation.location, left } };
}

interface Candidate {
  readonly branch: SchemaNode;
  /** The one to tell about when none holds: where one of the case's schemas stands in its own document, or the only one. */
  readonly meant: boolean;
}

/** First what the case says in the same words, then what stands in the same location, then all others. */
function candidates(
  { nodes, types }: Conjunction,
  branches: Branches,
  near: readonly SchemaNode[],
  prover: Prover,
): Candidate[] {
  const classes = new Set(nodes.map((node) => prover.classOf(node)));
  const meant = new Set(
    nodes
      .flatMap(({ pointer }) => branches.at(pointer) ?? [])
      .filter(
        (branch) =>
          (typesOf(branch) & types) !== 0 ||
          nodes.some((node) => isListedAt(node, branch.pointer, branches.list.length)),
      ),
  );
  const others = near.filter((branch) => !meant.has(branch));
  const isSame = (branch: SchemaNode): boolean => {
    const of = prover.classOf(branch);
    return of !== undefined && classes.has(of);
  };
  return [
    ...others.filter(isSame).map((branch) => ({ branch, meant: false })),
    ...[...meant].map((branch) => ({ branch, meant: true })),
    ...others
      .filter((branch) => !isSame(branch))
      .map((branch) => ({ branch, meant: meant.size === 0 && others.length === 1 })),
  ];
}

/** Whether a schema has as many branches, one of them there: then that one was changed, and none was taken out before it. */
function isListedAt({ anyOf, oneOf }: SchemaNode, pointer: string, count: number): boolean {
  return [anyOf, oneOf].some(
    (list) => list.length === count && list.some((branch) => branch.pointer === pointer),
  );
}

/** Where the condition holds, `then` must; elsewhere `else` must. */
function* conditionHolds(obligation: Obligation, prover: Prover): Proof {
  const { left, right } = obligation;
  const { if: condition, then, else: otherwise } = right;
  const met = within(obligation, left.with({ nodes: [condition!] }));
  const unmet = within(obligation, left.with({ negated: [condition!] }));
  const first = yield* wayHolds(met, prover, then);
  const second = yield* wayHolds(unmet, prover, otherwise);
  return first && second;
}

function* wayHolds(obligation: Obligation, prover: Prover, right: SchemaNode | undefined): Proof {
  if (right === undefined || (yield* prover.isEmpty(obligation.left, obligation))) return true;
  return yield* prover.prove({ ...obligation, right });
}
