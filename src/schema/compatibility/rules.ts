import { spend } from "../limits.ts";
import type { TextSearch } from "../patterns/search.ts";
import { INTEGER_FORMATS } from "../validate/formats.ts";
import { isMultipleOf, NUMBER, TYPE, TYPE_BITS, typesNamed } from "../validate/values.ts";
import { type Facts, factsOf, wholeRange } from "./bounds.ts";
import { Case } from "./conjunction.ts";
import type { Finding, Goal, KeywordRule, Prover, Showing } from "./obligation.ts";
import type { SchemaNode } from "../node.ts";
import { type Branches, branchesOf, clash, typesOf } from "./unions.ts";

type Rule = (limit: unknown, facts: Facts, texts: TextSearch) => boolean | Showing;

/** A keyword that only looks at values of some types: it holds where the case has none of these. */
const about =
  (types: number, rule: Rule): Rule =>
  (limit, facts, texts) =>
    (facts.types & types) === 0 || rule(limit, facts, texts);

const RULES: Readonly<Record<string, Rule>> = {
  type: (type, { types }) => (types & ~typesNamed(type)) === 0,
  // Where the values are listed each is looked at; elsewhere there are more than any list has.
  enum: () => false,
  const: () => false,
  maximum: about(
    NUMBER,
    (limit, facts) => facts.upper.value <= (limit as number) || wholeWithin(facts, -Infinity, limit),
  ),
  exclusiveMaximum: about(NUMBER, (limit, { upper }) =>
    upper.exclusive ? upper.value <= (limit as number) : upper.value < (limit as number),
  ),
  minimum: about(
    NUMBER,
    (limit, facts) => facts.lower.value >= (limit as number) || wholeWithin(facts, limit, Infinity),
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
    (limit, facts, texts) =>
      facts.maxLength <= (limit as number) ||
      noText(texts, facts, { minLength: Math.max(facts.minLength, (limit as number) + 1) }),
  ),
  minLength: about(
    TYPE.string,
    (limit, facts, texts) =>
      facts.minLength >= (limit as number) ||
      noText(texts, facts, { maxLength: Math.min(facts.maxLength, (limit as number) - 1) }),
  ),
  pattern: about(
    TYPE.string,
    (pattern, facts, texts) =>
      facts.patterns.includes(pattern as string) ||
      noText(texts, facts, { notMatching: [pattern as string] }),
  ),
  format: (format, facts) => {
    const range = INTEGER_FORMATS.get(String(format));
    if (range !== undefined) return (facts.types & NUMBER) === 0 || wholeWithin(facts, ...range);
    if ((facts.types & TYPE.string) === 0) return true;
    return facts.formats.some(
      (known) => known === format || WIDER_FORMATS.get(known)?.includes(String(format)) === true,
    );
  },
  maxItems: about(TYPE.array, (limit, facts) => facts.maxItems <= (limit as number)),
  minItems: about(TYPE.array, (limit, facts) => facts.minItems >= (limit as number)),
  uniqueItems: about(TYPE.array, (_limit, facts) => facts.unique || facts.maxItems <= 1),
  maxProperties: about(TYPE.object, (limit, facts) => facts.maxProperties <= (limit as number)),
  minProperties: about(TYPE.object, (limit, facts) => facts.minProperties >= (limit as number)),
};

export function valueTask(keyword: string): KeywordRule | undefined {
  const rule = RULES[keyword];
  if (rule === undefined) return undefined;
  return {
    keyword,
    holds: ({ left, right }, { texts }) => rule(right.value(keyword), factsOf(left), texts),
  };
}

/** Whole numbers do not reach a bound between two of them. */
function wholeWithin(facts: Facts, lowest: unknown, highest: unknown): boolean {
  if ((facts.types & TYPE.fraction) !== 0) return false;
  const [first, last] = wholeRange(facts);
  return last <= (highest as number) && first >= (lowest as number);
}

/** Whether no text of the case is one such. */
function* noText(
  texts: TextSearch,
  { patterns, minLength, maxLength }: Facts,
  such: { notMatching?: string[]; minLength?: number; maxLength?: number },
): Showing {
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
export function* arrayTasks(right: SchemaNode): Generator<KeywordRule> {
  if (right.keywords.includes("items")) {
    if (right.tuple === undefined) yield { keyword: "items", holds: placesHold(0, Infinity) };
    for (const index of right.tuple?.keys() ?? []) {
      yield { keyword: "items", part: index, holds: placesHold(index, index + 1) };
    }
  }
  if (right.keywords.includes("additionalItems")) {
    yield { keyword: "additionalItems", holds: placesHold(right.tuple!.length, Infinity) };
  }
  if (right.contains !== undefined) yield { keyword: "contains", holds: containsOne };
}

function placesHold(from: number, to: number): KeywordRule["holds"] {
  return function* (goal, prover) {
    const { left, right } = goal;
    const { types, maxItems } = factsOf(left);
    if ((types & TYPE.array) === 0) return true;
    // One place after the last that any schema tells apart stands for all the rest.
    const looking = [...left.shapes, ...goal.view.shapes];
    const told = Math.max(from, ...looking.map(({ tuple }) => tuple?.length ?? 0));
    const end = Math.min(to, told + 1, maxItems);
    for (let index = from; index < end; index++) {
      if (!(yield* prover.prove(prover.item(goal, index, right.itemNode(index)!)))) return false;
    }
    return true;
  };
}

const MAX_PLACES_TRIED = 8;

/** Some item must be shown to be one, whatever the list: one the left side asks for too, or the first where all are. */
function* containsOne(goal: Goal, prover: Prover): Showing {
  const { left, right } = goal;
  const { types, minItems } = factsOf(left);
  if ((types & TYPE.array) === 0) return true;
  const inner = right.contains!;
  const tried = (one: Goal): Showing => prover.prove({ ...one, findings: [] });
  for (let index = 0; index < Math.min(minItems, MAX_PLACES_TRIED); index++) {
    if (yield* tried(prover.item(goal, index, inner))) return true;
  }
  // It may stand anywhere, so only what holds at every place is known of it.
  const everywhere = left.shapes.flatMap(({ items }) => items ?? []);
  const strict = goal.strict || goal.view.shapes.some(({ tuple }) => tuple !== undefined);
  for (const { contains } of left.shapes) {
    if (contains === undefined) continue;
    const one = new Case({ all: [contains, ...everywhere] });
    if (yield* tried(prover.item({ ...goal, strict }, 0, inner, one))) return true;
  }
  return false;
}

/** What a schema says by combining others. */
export function* choiceTasks(right: SchemaNode): Generator<KeywordRule> {
  for (const [index, inner] of right.allOf.entries()) {
    yield { keyword: "allOf", part: index, holds: (goal, prover) => prover.prove({ ...goal, right: inner }) };
  }
  for (const keyword of ["anyOf", "oneOf"] as const) {
    if (right[keyword].length === 0) continue;
    const branches = branchesOf(right, keyword);
    const additions: Additions = new Map();
    const holds: KeywordRule["holds"] = function* (goal, prover) {
      return (
        (yield* areKept(goal, prover, branches.list, keyword, additions)) ||
        (yield* oneHolds(goal, prover, branches, keyword === "oneOf"))
      );
    };
    yield { keyword, branches, holds };
  }
  if (right.not !== undefined) {
    yield { keyword: "not", holds: (goal, prover) => isExcluded(goal, prover, right.not!) };
  }
  if (right.keywords.includes("if")) yield { keyword: "if", holds: conditionHolds };
}

/** Whether no value of the case conforms to the schema. */
function* isExcluded(goal: Goal, prover: Prover, right: SchemaNode): Showing {
  if (prover.refuses(goal.left, right) || goal.left.shapes.some((shape) => clash(shape, right))) return true;
  return yield* prover.isImpossible(goal.left.with({ all: [right] }), goal);
}

function* areExcluded(goal: Goal, prover: Prover, branches: readonly SchemaNode[]): Showing {
  for (const branch of branches) if (!(yield* isExcluded(goal, prover, branch))) return false;
  return true;
}

/** By branches there were before, what there is beside them: each way of a choice asks for it again. */
type Additions = Map<readonly SchemaNode[], readonly SchemaNode[] | undefined>;

/**
 * Whether a schema of the case has all its branches here again, word for word: then one of them holds. Of a `oneOf` no
 * other may hold then.
 */
function* areKept(
  goal: Goal,
  prover: Prover,
  branches: readonly SchemaNode[],
  keyword: "anyOf" | "oneOf",
  additions: Additions,
): Showing {
  for (const { anyOf, oneOf } of goal.left.shapes) {
    for (const kept of keyword === "anyOf" ? [anyOf, oneOf] : [oneOf]) {
      if (kept.length === 0) continue;
      if (!additions.has(kept)) additions.set(kept, addedTo(kept, branches, prover));
      const added = additions.get(kept);
      if (added === undefined) continue;
      if (keyword === "anyOf" || (yield* areExcluded(goal, prover, added))) return true;
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

function* oneHolds(goal: Goal, prover: Prover, branches: Branches, only: boolean): Showing {
  const { left } = goal;
  const near = yield* prover.near(left, branches);
  const tried: Finding[][] = [];
  for (const { branch, meant } of candidates(left, branches, near, prover)) {
    const findings: Finding[] = [];
    const holds = yield* prover.prove({ ...goal, right: branch, brief: goal.brief || !meant, findings });
    const others = only ? near.filter((other) => other !== branch) : [];
    if (holds && (yield* areExcluded(goal, prover, others))) return true;
    if (meant) tried.push(findings);
  }
  const { types } = factsOf(left);
  const bits = TYPE_BITS.filter((bit) => (bit & types) !== 0);
  if (bits.length > 1) {
    // Each type may go its own way.
    for (const bit of bits) {
      const narrowed = within(goal, left.with({ types: bit }));
      if (!(yield* oneHolds(narrowed, prover, branches, only))) return false;
    }
    return true;
  }
  goal.findings.push(...(tried[0] ?? []));
  return false;
}

function within(goal: Goal, left: Case): Goal {
  return { ...goal, left, place: { ...goal.place, left } };
}

interface Candidate {
  readonly branch: SchemaNode;
  /** The one to tell about when none holds: where one of the case's schemas stands in its own document, or the only one. */
  readonly meant: boolean;
}

/** First what the case says in the same words, then what stands in the same place, then all others. */
function candidates(
  { shapes, types }: Case,
  branches: Branches,
  near: readonly SchemaNode[],
  prover: Prover,
): Candidate[] {
  const classes = new Set(shapes.map((shape) => prover.classOf(shape)));
  const meant = new Set(
    shapes
      .flatMap(({ pointer }) => branches.at(pointer) ?? [])
      .filter(
        (branch) =>
          (typesOf(branch) & types) !== 0 ||
          shapes.some((shape) => isListedAt(shape, branch.pointer, branches.list.length)),
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
function* conditionHolds(goal: Goal, prover: Prover): Showing {
  const { left, right } = goal;
  const { if: condition, then, else: otherwise } = right;
  const met = within(goal, left.with({ all: [condition!] }));
  const unmet = within(goal, left.with({ none: [condition!] }));
  const first = yield* wayHolds(met, prover, then);
  const second = yield* wayHolds(unmet, prover, otherwise);
  return first && second;
}

function* wayHolds(goal: Goal, prover: Prover, right: SchemaNode | undefined): Showing {
  if (right === undefined || (yield* prover.isImpossible(goal.left, goal))) return true;
  return yield* prover.prove({ ...goal, right });
}
