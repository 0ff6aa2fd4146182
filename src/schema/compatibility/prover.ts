import type { Steps } from "../../runtime/yielding.ts";
import { budget, spend } from "../limits.ts";
import { TextWitness } from "../patterns/search.ts";
import { ANY, TYPE } from "../validate/values.ts";
import { boundsOf } from "./bounds.ts";
import { Conjunction, type Alternatives } from "./conjunction.ts";
import { Equivalence } from "./equivalence.ts";
import { matchesKeyword } from "./evaluate.ts";
import { KnownNamesIndex } from "./known-names.ts";
import { objectRules } from "./object-rules.ts";
import type { Scope, Violation, Obligation, KeywordRule, Prover, Proof } from "./obligation.ts";
import { listRules, unionRules, scalarRule } from "./rules.ts";
import type { SchemaNode } from "../node.ts";
import { type Branches, areDisjoint } from "./unions.ts";

const STEPS_PER_OBLIGATION = 8;
/** Of a obligation that says very much at once each schema is looked at; ordinary ones say one or two. */
const NODES_PER_STEP_BITS = 4;
/** Undecided choices of one case that are gone through; each doubles the cases at least. */
const MAX_DECIDED = 6;
/** Up to so many branches of the right side are held to the whole left side first. */
const MANY_BRANCHES = 6;

interface Verdict {
  holds: boolean | "open";
  /** How deep in the payload it was opened. */
  readonly depth: number;
  readonly firstOnly: boolean;
  violations: readonly Violation[];
}

/**
 * Shows that one schema allows no more than another, by structure: what a obligation's right side says is shown keyword by
 * keyword from what its left side says together.
 *
 * Recursive schemas come back to a obligation that is being shown. It is then taken to hold, as values are finite: a value that
 * fails would have a smaller one inside that fails, and so on without end. That needs each round to go deeper into the
 * value, which is checked.
 *
 * It answers no wherever it does not know.
 */
export class InclusionProver implements Prover {
  readonly side: "producer" | "consumer";
  readonly texts: TextWitness;
  readonly #knownNames: KnownNamesIndex;
  readonly #equivalence = new Equivalence();
  readonly #obligations = new Map<string, Verdict>();
  readonly #empty = new Map<string, boolean | "open">();
  readonly #rules = new Map<SchemaNode, readonly KeywordRule[]>();
  readonly #refused = new WeakMap<Conjunction, ReadonlySet<number | undefined>>();
  /** What was shown while other obligations were taken to hold, in the order it was begun: to be forgotten if one does not. */
  readonly #trail: (() => void)[] = [];

  /** @param old the root of the old document, whichever side it is on */
  constructor(side: "producer" | "consumer", old: SchemaNode, texts = new TextWitness()) {
    this.side = side;
    this.texts = texts;
    this.#knownNames = new KnownNamesIndex(old);
  }

  /** What keeps the right document from allowing all the left one does. A payload is an object. */
  *compare(left: SchemaNode, right: SchemaNode): Steps<Violation[]> {
    const violations: Violation[] = [];
    yield* this.#equivalence.readSteps(left, right);
    const start = new Conjunction({ nodes: [left], types: TYPE.object });
    const location = { parent: undefined, step: "", left: start };
    yield* this.prove({
      left: start,
      right,
      strict: false,
      known: this.#knownNames.root,
      depth: 0,
      firstOnly: false,
      location,
      violations,
    });
    return violations;
  }

  *prove(obligation: Obligation): Proof {
    const { left, right, strict, known, depth, violations } = obligation;
    spend(STEPS_PER_OBLIGATION + (left.nodes.length >> NODES_PER_STEP_BITS));
    if (budget.shouldYield()) yield;
    if (right.target !== undefined) return yield* this.prove({ ...obligation, right: right.target });
    if (right.allowsAll && right.properties.size === 0) return true;
    if (left.types === 0 || left.nodes.some((node) => this.#equivalence.check(node, right))) return true;
    const key = `${left.key}|${right.id}|${strict ? "s" : this.side === "producer" ? known.id : ""}`;
    const verdict = this.#obligations.get(key);
    if (verdict !== undefined) {
      if (verdict.holds === "open") return verdict.depth < depth;
      if (verdict.holds || obligation.firstOnly || !verdict.firstOnly) {
        violations.push(...verdict.violations);
        return verdict.holds;
      }
    }
    const opened = this.#trail.length;
    const entry: Verdict = { holds: "open", depth, firstOnly: obligation.firstOnly, violations: [] };
    this.#obligations.set(key, entry);
    this.#trail.push(() => {
      if (entry.holds === true) this.#obligations.delete(key);
    });
    const found: Violation[] = [];
    const holds =
      (yield* this.#holds({ ...obligation, violations: found })) || (yield* this.isEmpty(left, obligation));
    entry.holds = holds;
    if (!holds) {
      entry.violations = distinct(found);
      violations.push(...entry.violations);
      for (const forget of this.#trail.splice(opened)) forget();
    }
    return holds;
  }

  *#holds(obligation: Obligation): Proof {
    const { right, location, violations } = obligation;
    if (right.allowsNone) {
      violations.push({ right, keyword: "false", member: undefined, location });
      return false;
    }
    let holds = true;
    for (const rule of this.#rulesOf(right)) {
      const found: Violation[] = [];
      if (yield* this.#check({ ...obligation, violations: found }, rule, MAX_DECIDED)) continue;
      holds = false;
      if (found.length > 0) violations.push(...found);
      else violations.push({ right, keyword: rule.keyword, member: rule.member, location });
      // Of what may be anything there is nothing more to tell.
      if (obligation.firstOnly || (rule.keyword === "type" && isAnything(obligation.left))) return false;
    }
    return holds;
  }

  /** One keyword, in plain sight or, failing that, for each way the left side's choices may go. */
  *#check(obligation: Obligation, rule: KeywordRule, decisions: number): Proof {
    spend(STEPS_PER_OBLIGATION);
    if (budget.shouldYield()) yield;
    const { left, right, violations } = obligation;
    const { values } = boundsOf(left);
    if (values !== undefined) {
      const lenient = this.side === "consumer" && !obligation.strict;
      if (values.every((value) => matchesKeyword(right, rule.keyword, value, lenient))) return true;
      // Only for what it finds further inside.
      yield* this.#applies(rule, obligation);
      return false;
    }
    const choice = decisions === 0 ? undefined : choiceFor(left, rule);
    const found: Violation[] = [];
    const isTooWide = choice !== undefined && (yield* this.#isTooWide(rule, obligation));
    if (!isTooWide && (yield* this.#applies(rule, { ...obligation, violations: found }))) return true;
    if (choice === undefined) {
      violations.push(...found);
      return false;
    }
    const branchViolations: Violation[] = [];
    let holds = true;
    for (const way of left.expand(choice)) {
      const inner = {
        ...obligation,
        left: way,
        location: { ...obligation.location, left: way },
        violations: branchViolations,
      };
      if ((yield* this.#check(inner, rule, decisions - 1)) || (yield* this.isEmpty(way, obligation)))
        continue;
      if (branchViolations.length === 0) {
        branchViolations.push({
          right,
          keyword: rule.keyword,
          member: rule.member,
          location: inner.location,
        });
      }
      holds = false;
      if (obligation.firstOnly) break;
    }
    if (!holds) violations.push(...branchViolations);
    return holds;
  }

  /** Whether so many branches come into question that each way of the left side is better held to them by itself. */
  *#isTooWide(rule: KeywordRule, { left }: Obligation): Proof {
    return (
      rule.branches !== undefined && (yield* this.overlapping(left, rule.branches)).length > MANY_BRANCHES
    );
  }

  *overlapping(left: Conjunction, branches: Branches): Steps<readonly SchemaNode[]> {
    const near: SchemaNode[] = [];
    for (const branch of branches.related(left.nodes)) {
      if (budget.shouldYield()) yield;
      // Where the case has choices as well, each of their branches is held against this one.
      if (!left.nodes.some((node) => areDisjoint(node, branch))) near.push(branch);
    }
    return near;
  }

  classOf(node: SchemaNode): number | undefined {
    return this.#equivalence.classOf(node);
  }

  /** Whether the case rules out in so many words what the schema says. */
  refuses(left: Conjunction, right: SchemaNode): boolean {
    const of = this.#equivalence.classOf(right);
    let refused = this.#refused.get(left);
    if (refused === undefined) {
      spend(left.negated.length);
      refused = new Set(left.negated.map((node) => this.#equivalence.classOf(node)));
      this.#refused.set(left, refused);
    }
    return of !== undefined && refused.has(of);
  }

  *#applies(rule: KeywordRule, obligation: Obligation): Proof {
    const holds = rule.holds(obligation, this);
    return typeof holds === "boolean" ? holds : yield* holds;
  }

  *isEmpty(left: Conjunction, at: Scope): Proof {
    spend(STEPS_PER_OBLIGATION);
    if (budget.shouldYield()) yield;
    const { types, values } = boundsOf(left);
    if (types === 0 || values?.length === 0) return true;
    if (values !== undefined) return false;
    const known = this.#empty.get(left.key);
    if (known !== undefined) return known === true;
    this.#empty.set(left.key, "open");
    const impossible = yield* this.#contradicts(left, types, at);
    this.#empty.set(left.key, impossible);
    if (impossible) this.#trail.push(() => this.#empty.delete(left.key));
    return impossible;
  }

  /** As `isImpossible`, for something inside: one schema alone hardly ever contradicts itself, so there it is a short look. */
  *#isEmptyShallow(inner: Conjunction, at: Scope): Proof {
    if (budget.shouldYield()) yield;
    const { types, values } = boundsOf(inner);
    if (types === 0 || values?.length === 0) return true;
    return inner.nodes.length + inner.negated.length > 1 && (yield* this.isEmpty(inner, at));
  }

  *#contradicts(left: Conjunction, types: number, { known, depth }: Scope): Proof {
    const { required, minItems } = boundsOf(left);
    const at = { known, depth: depth + 1 };
    let rest = types;
    if ((rest & TYPE.object) !== 0) {
      for (const name of required) {
        if (!(yield* this.#isEmptyShallow(left.member(name), at))) continue;
        rest &= ~TYPE.object;
        break;
      }
    }
    if ((rest & TYPE.array) !== 0 && minItems > 0 && (yield* this.#isEmptyShallow(left.item(0), at))) {
      rest &= ~TYPE.array;
    }
    if (rest === 0) return true;
    const narrowed = rest === left.types ? left : left.with({ types: rest });
    const location = { parent: undefined, step: "", left: narrowed };
    const obligation = {
      left: narrowed,
      strict: true,
      known,
      depth,
      firstOnly: true,
      location,
      violations: [],
    };
    for (const right of narrowed.negated) if (yield* this.prove({ ...obligation, right })) return true;
    for (const choice of narrowed.alternatives) {
      if (yield* this.#areEmpty(narrowed.expand(choice), { known, depth })) return true;
    }
    return false;
  }

  *#areEmpty(ways: Iterable<Conjunction>, at: Scope): Proof {
    for (const way of ways) if (!(yield* this.isEmpty(way, at))) return false;
    return true;
  }

  member(
    obligation: Obligation,
    name: string,
    right: SchemaNode,
    left = obligation.left.member(name),
  ): Obligation {
    const location = { parent: obligation.location, step: name, left };
    return {
      ...obligation,
      left,
      right,
      known: this.#knownNames.member(obligation.known, name),
      depth: obligation.depth + 1,
      location,
    };
  }

  item(
    obligation: Obligation,
    index: number,
    right: SchemaNode,
    left = obligation.left.item(index),
  ): Obligation {
    const location = { parent: obligation.location, step: index, left };
    return {
      ...obligation,
      left,
      right,
      known: this.#knownNames.item(obligation.known, index),
      depth: obligation.depth + 1,
      location,
    };
  }

  mentions(known: Scope["known"], name: string): boolean {
    return this.#knownNames.mentions(known, name);
  }

  #rulesOf(right: SchemaNode): readonly KeywordRule[] {
    let rules = this.#rules.get(right);
    if (rules === undefined) {
      const values = right.keywords.flatMap((keyword) => scalarRule(keyword) ?? []);
      rules = [...values, ...objectRules(right), ...listRules(right), ...unionRules(right)];
      this.#rules.set(right, rules);
    }
    return rules;
  }
}

/** The choice to go through for a rule: where that has branches, the one with the most ways, which may be the same ones. */
function choiceFor({ alternatives }: Conjunction, { branches }: KeywordRule): Alternatives | undefined {
  if (branches === undefined) return alternatives[0];
  return alternatives.toSorted((one, other) => other.count - one.count)[0];
}

/** One for each location of the schema: where many obligations come to the same one, its violations would double at each of them. */
function distinct(found: readonly Violation[]): Violation[] {
  return [
    ...new Map(found.map((one) => [`${one.right.id} ${one.keyword} ${one.member ?? ""}`, one])).values(),
  ];
}

function isAnything({ nodes, negated, types }: Conjunction): boolean {
  return nodes.length === 0 && negated.length === 0 && types === ANY;
}
