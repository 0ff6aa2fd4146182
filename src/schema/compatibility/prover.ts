import { typesAbout } from "../keywords.ts";
import { spend } from "../limits.ts";
import { memoize } from "../memoize.ts";
import { TextWitness } from "../patterns/search.ts";
import { ANY, TYPE } from "../validate/values.ts";
import { boundsOf } from "./bounds.ts";
import { Conjunction } from "./conjunction.ts";
import { Equivalence } from "./equivalence.ts";
import { matchesKeyword } from "../validate/evaluate.ts";
import { KnownNames } from "./known-names.ts";
import { objectRules } from "./object-rules.ts";
import {
  type KeywordRule,
  narrowed,
  type Obligation,
  type Prover,
  type ObligationScope,
  type Violation,
} from "./obligation.ts";
import { listRules, unionRules, scalarRule } from "./rules.ts";
import type { SchemaNode } from "../node.ts";

const STEPS_PER_OBLIGATION = 8;
/** Alternatives of one conjunction that are expanded; each at least doubles the conjunctions. */
const MAX_DECIDED = 6;

interface ProofVerdict {
  holds: boolean | "open";
  readonly depth: number;
  readonly firstOnly: boolean;
  violations: readonly Violation[];
}

/**
 * Proves that one schema allows no more than another, each keyword of the right side from all that the left side says. The
 * answer is no wherever it does not know.
 *
 * A recursive schema leads back to an obligation whose proof is open. That one is assumed to hold if it is deeper in the
 * value: values are finite, so a value that fails cannot always have a smaller one inside that fails.
 */
export class InclusionProver implements Prover {
  readonly side: "producer" | "consumer";
  readonly texts: TextWitness;
  readonly #known: KnownNames;
  readonly equivalence = new Equivalence();
  readonly #obligations = new Map<string, ProofVerdict>();
  readonly #empty = new Map<string, boolean | "open">();
  readonly #rulesOf = memoize((right: SchemaNode): readonly KeywordRule[] => {
    const values = right.keywords.flatMap((keyword) => scalarRule(keyword) ?? []);
    return [...values, ...objectRules(right), ...listRules(right), ...unionRules(right)];
  });
  /** Undoes, in order, what was proven on an assumption that then failed. */
  readonly #trail: (() => void)[] = [];

  /** @param old the root of the old document, whichever side it is on */
  constructor(side: "producer" | "consumer", old: SchemaNode, texts = new TextWitness()) {
    this.side = side;
    this.texts = texts;
    this.#known = KnownNames.of(old);
  }

  /** What of the left document the right one does not allow. A payload is an object. */
  compare(left: SchemaNode, right: SchemaNode): Violation[] {
    const violations: Violation[] = [];
    this.equivalence.read(left.document, right.document);
    const start = new Conjunction({ nodes: [left], types: TYPE.object });
    const location = { parent: undefined, step: "", left: start };
    const at = { known: this.#known, depth: 0, location };
    this.prove({ ...at, left: start, right, strict: false, firstOnly: false, violations });
    return violations;
  }

  prove(obligation: Obligation): boolean {
    const { left, right, strict, known, depth, violations } = obligation;
    spend(STEPS_PER_OBLIGATION + (left.nodes.length >> 4));
    if (right.target !== undefined) return this.prove({ ...obligation, right: right.resolved });
    if (right.allowsAll) return true;
    if (left.types === 0 || left.nodes.some((node) => this.equivalence.check(node, right))) return true;
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
    const entry: ProofVerdict = { holds: "open", depth, firstOnly: obligation.firstOnly, violations: [] };
    this.#obligations.set(key, entry);
    this.#trail.push(() => {
      if (entry.holds === true) this.#obligations.delete(key);
    });
    const ownViolations: Violation[] = [];
    const holds = this.#holds({ ...obligation, violations: ownViolations }) || this.isEmpty(left, obligation);
    entry.holds = holds;
    if (!holds) {
      entry.violations = distinct(ownViolations);
      violations.push(...entry.violations);
      for (const undo of this.#trail.splice(opened)) undo();
    }
    return holds;
  }

  #holds(obligation: Obligation): boolean {
    const { right, location, violations } = obligation;
    if (right.allowsNone) {
      violations.push({ right, keyword: "false", member: undefined, location });
      return false;
    }
    let holds = true;
    for (const rule of this.#rulesOf(right)) {
      const ruleViolations: Violation[] = [];
      if (this.#check({ ...obligation, violations: ruleViolations }, rule, MAX_DECIDED)) continue;
      holds = false;
      if (ruleViolations.length > 0) violations.push(...ruleViolations);
      else violations.push(violationOf(obligation, rule));
      // Where any value was allowed, no other keyword adds anything.
      if (obligation.firstOnly || (rule.keyword === "type" && isAnything(obligation.left))) return false;
    }
    return holds;
  }

  /** One keyword: for the whole left side, or failing that, for each alternative of it. */
  #check(obligation: Obligation, rule: KeywordRule, decisions: number): boolean {
    spend(STEPS_PER_OBLIGATION);
    const { left, right, violations } = obligation;
    const { values } = boundsOf(left);
    if (values !== undefined) {
      const lenient = this.side === "consumer" && !obligation.strict;
      if (values.every((value) => matchesKeyword(right, rule.keyword, value, lenient))) return true;
      // The rule is applied for the violations that it finds further inside.
      this.#applies(rule, obligation);
      return false;
    }
    const choice = decisions === 0 ? undefined : left.alternatives[0];
    const ruleViolations: Violation[] = [];
    if (this.#applies(rule, { ...obligation, violations: ruleViolations })) return true;
    if (choice === undefined) {
      violations.push(...ruleViolations);
      return false;
    }
    const branchViolations: Violation[] = [];
    let holds = true;
    for (const way of left.expand(choice)) {
      const inner = { ...narrowed(obligation, way), violations: branchViolations };
      if (this.#check(inner, rule, decisions - 1)) continue;
      if (this.isEmpty(way, obligation)) continue;
      if (branchViolations.length === 0) branchViolations.push(violationOf(inner, rule));
      holds = false;
      if (obligation.firstOnly) break;
    }
    if (!holds) violations.push(...branchViolations);
    return holds;
  }

  #applies(rule: KeywordRule, obligation: Obligation): boolean {
    if ((boundsOf(obligation.left).types & typesAbout(rule.keyword)) === 0) return true;
    return rule.holds(obligation, this);
  }

  isEmpty(left: Conjunction, at: ObligationScope): boolean {
    spend(STEPS_PER_OBLIGATION);
    const { types, values } = boundsOf(left);
    if (types === 0 || values?.length === 0) return true;
    if (values !== undefined) return false;
    const known = this.#empty.get(left.key);
    if (known !== undefined) return known === true;
    this.#empty.set(left.key, "open");
    const impossible = this.#contradicts(left, types, at);
    this.#empty.set(left.key, impossible);
    if (impossible) this.#trail.push(() => this.#empty.delete(left.key));
    return impossible;
  }

  #contradicts(left: Conjunction, types: number, { known, depth }: ObligationScope): boolean {
    const { required, minItems } = boundsOf(left);
    const at = { known, depth: depth + 1 };
    let rest = types;
    if ((rest & TYPE.object) !== 0) {
      for (const name of required) {
        if (!this.isEmpty(left.member(name), at)) continue;
        rest &= ~TYPE.object;
        break;
      }
    }
    if ((rest & TYPE.array) !== 0 && minItems > 0 && this.isEmpty(left.item(0), at)) {
      rest &= ~TYPE.array;
    }
    if (rest === 0) return true;
    const fewer = rest === left.types ? left : left.with({ types: rest });
    const location = { parent: undefined, step: "", left: fewer };
    const obligation = { left: fewer, strict: true, known, depth, firstOnly: true, location, violations: [] };
    for (const right of fewer.negated) if (this.prove({ ...obligation, right })) return true;
    for (const choice of fewer.alternatives) {
      if (this.#areEmpty(fewer.expand(choice), { known, depth })) return true;
    }
    return false;
  }

  #areEmpty(ways: Iterable<Conjunction>, at: ObligationScope): boolean {
    for (const way of ways) if (!this.isEmpty(way, at)) return false;
    return true;
  }
}

function violationOf({ right, location }: Obligation, { keyword, member }: KeywordRule): Violation {
  return { right, keyword, member, location };
}

/** One for each place: where many obligations lead to the same one, its violations would double each time. */
function distinct(violations: readonly Violation[]): Violation[] {
  return [
    ...new Map(violations.map((one) => [`${one.right.id} ${one.keyword} ${one.member ?? ""}`, one])).values(),
  ];
}

function isAnything({ nodes, negated, types }: Conjunction): boolean {
  return nodes.length === 0 && negated.length === 0 && types === ANY;
}
