import type { Steps } from "../../runtime/yielding.ts";
import { budget, spend } from "../limits.ts";
import { TextSearch } from "../patterns/search.ts";
import { ANY, TYPE } from "../validate/values.ts";
import { factsOf } from "./bounds.ts";
import { Case, type Choice } from "./conjunction.ts";
import { Sameness } from "./equivalence.ts";
import { acceptsKeyword } from "./evaluate.ts";
import { Views } from "./known-names.ts";
import { objectTasks } from "./object-rules.ts";
import type { At, Finding, Goal, KeywordRule, Prover, Showing } from "./obligation.ts";
import { arrayTasks, choiceTasks, valueTask } from "./rules.ts";
import type { SchemaNode } from "../node.ts";
import { type Branches, clash } from "./unions.ts";

const STEPS_PER_GOAL = 8;
/** Of a goal that says very much at once each schema is looked at; ordinary ones say one or two. */
const SHAPES_PER_STEP_BITS = 4;
/** Undecided choices of one case that are gone through; each doubles the cases at least. */
const MAX_DECIDED = 6;
/** Up to so many branches of the right side are held to the whole left side first. */
const MANY_BRANCHES = 6;

interface Known {
  holds: boolean | "open";
  /** How deep in the payload it was opened. */
  readonly depth: number;
  readonly brief: boolean;
  findings: readonly Finding[];
}

/**
 * Shows that one schema allows no more than another, by structure: what a goal's right side says is shown keyword by
 * keyword from what its left side says together.
 *
 * Recursive schemas come back to a goal that is being shown. It is then taken to hold, as values are finite: a value that
 * fails would have a smaller one inside that fails, and so on without end. That needs each round to go deeper into the
 * value, which is checked.
 *
 * It answers no wherever it does not know.
 */
export class StructuralProver implements Prover {
  readonly side: "producer" | "consumer";
  readonly texts: TextSearch;
  readonly #views: Views;
  readonly #same = new Sameness();
  readonly #goals = new Map<string, Known>();
  readonly #impossible = new Map<string, boolean | "open">();
  readonly #tasks = new Map<SchemaNode, readonly KeywordRule[]>();
  readonly #refused = new WeakMap<Case, ReadonlySet<number | undefined>>();
  /** What was shown while other goals were taken to hold, in the order it was begun: to be forgotten if one does not. */
  readonly #trail: (() => void)[] = [];

  /** @param old the root of the old document, whichever side it is on */
  constructor(side: "producer" | "consumer", old: SchemaNode, texts = new TextSearch()) {
    this.side = side;
    this.texts = texts;
    this.#views = new Views(old);
  }

  /** What keeps the right document from allowing all the left one does. A payload is an object. */
  *compare(left: SchemaNode, right: SchemaNode): Steps<Finding[]> {
    const findings: Finding[] = [];
    yield* this.#same.reading(left, right);
    const start = new Case({ all: [left], types: TYPE.object });
    const place = { parent: undefined, step: "", left: start };
    yield* this.prove({
      left: start,
      right,
      strict: false,
      view: this.#views.root,
      depth: 0,
      brief: false,
      place,
      findings,
    });
    return findings;
  }

  *prove(goal: Goal): Showing {
    const { left, right, strict, view, depth, findings } = goal;
    spend(STEPS_PER_GOAL + (left.shapes.length >> SHAPES_PER_STEP_BITS));
    if (budget.shouldYield()) yield;
    if (right.target !== undefined) return yield* this.prove({ ...goal, right: right.target });
    if (right.allowsAll && right.properties.size === 0) return true;
    if (left.types === 0 || left.shapes.some((shape) => this.#same.check(shape, right))) return true;
    const key = `${left.key}|${right.id}|${strict ? "s" : this.side === "producer" ? view.id : ""}`;
    const known = this.#goals.get(key);
    if (known !== undefined) {
      if (known.holds === "open") return known.depth < depth;
      if (known.holds || goal.brief || !known.brief) {
        findings.push(...known.findings);
        return known.holds;
      }
    }
    const opened = this.#trail.length;
    const entry: Known = { holds: "open", depth, brief: goal.brief, findings: [] };
    this.#goals.set(key, entry);
    this.#trail.push(() => {
      if (entry.holds === true) this.#goals.delete(key);
    });
    const found: Finding[] = [];
    const holds =
      (yield* this.#holds({ ...goal, findings: found })) || (yield* this.isImpossible(left, goal));
    entry.holds = holds;
    if (!holds) {
      entry.findings = distinct(found);
      findings.push(...entry.findings);
      for (const forget of this.#trail.splice(opened)) forget();
    }
    return holds;
  }

  *#holds(goal: Goal): Showing {
    const { right, place, findings } = goal;
    if (right.allowsNone) {
      findings.push({ right, keyword: "false", part: undefined, place });
      return false;
    }
    let holds = true;
    for (const task of this.#tasksOf(right)) {
      const found: Finding[] = [];
      if (yield* this.#check({ ...goal, findings: found }, task, MAX_DECIDED)) continue;
      holds = false;
      if (found.length > 0) findings.push(...found);
      else findings.push({ right, keyword: task.keyword, part: task.part, place });
      // Of what may be anything there is nothing more to tell.
      if (goal.brief || (task.keyword === "type" && isAnything(goal.left))) return false;
    }
    return holds;
  }

  /** One keyword, in plain sight or, failing that, for each way the left side's choices may go. */
  *#check(goal: Goal, task: KeywordRule, decisions: number): Showing {
    spend(STEPS_PER_GOAL);
    if (budget.shouldYield()) yield;
    const { left, right, findings } = goal;
    const { values } = factsOf(left);
    if (values !== undefined) {
      const lenient = this.side === "consumer" && !goal.strict;
      if (values.every((value) => acceptsKeyword(right, task.keyword, value, lenient))) return true;
      // Only for what it finds further inside.
      yield* this.#shown(task, goal);
      return false;
    }
    const choice = decisions === 0 ? undefined : choiceFor(left, task);
    const found: Finding[] = [];
    const isTooWide = choice !== undefined && (yield* this.#isTooWide(task, goal));
    if (!isTooWide && (yield* this.#shown(task, { ...goal, findings: found }))) return true;
    if (choice === undefined) {
      findings.push(...found);
      return false;
    }
    const branchFindings: Finding[] = [];
    let holds = true;
    for (const way of left.ways(choice)) {
      const inner = { ...goal, left: way, place: { ...goal.place, left: way }, findings: branchFindings };
      if ((yield* this.#check(inner, task, decisions - 1)) || (yield* this.isImpossible(way, goal))) continue;
      if (branchFindings.length === 0) {
        branchFindings.push({ right, keyword: task.keyword, part: task.part, place: inner.place });
      }
      holds = false;
      if (goal.brief) break;
    }
    if (!holds) findings.push(...branchFindings);
    return holds;
  }

  /** Whether so many branches come into question that each way of the left side is better held to them by itself. */
  *#isTooWide(task: KeywordRule, { left }: Goal): Showing {
    return task.branches !== undefined && (yield* this.near(left, task.branches)).length > MANY_BRANCHES;
  }

  *near(left: Case, branches: Branches): Steps<readonly SchemaNode[]> {
    const near: SchemaNode[] = [];
    for (const branch of branches.related(left.shapes)) {
      if (budget.shouldYield()) yield;
      // Where the case has choices as well, each of their branches is held against this one.
      if (!left.shapes.some((shape) => clash(shape, branch))) near.push(branch);
    }
    return near;
  }

  classOf(shape: SchemaNode): number | undefined {
    return this.#same.classOf(shape);
  }

  /** Whether the case rules out in so many words what the schema says. */
  refuses(left: Case, right: SchemaNode): boolean {
    const of = this.#same.classOf(right);
    let refused = this.#refused.get(left);
    if (refused === undefined) {
      spend(left.none.length);
      refused = new Set(left.none.map((shape) => this.#same.classOf(shape)));
      this.#refused.set(left, refused);
    }
    return of !== undefined && refused.has(of);
  }

  *#shown(task: KeywordRule, goal: Goal): Showing {
    const holds = task.holds(goal, this);
    return typeof holds === "boolean" ? holds : yield* holds;
  }

  *isImpossible(left: Case, at: At): Showing {
    spend(STEPS_PER_GOAL);
    if (budget.shouldYield()) yield;
    const { types, values } = factsOf(left);
    if (types === 0 || values?.length === 0) return true;
    if (values !== undefined) return false;
    const known = this.#impossible.get(left.key);
    if (known !== undefined) return known === true;
    this.#impossible.set(left.key, "open");
    const impossible = yield* this.#contradicts(left, types, at);
    this.#impossible.set(left.key, impossible);
    if (impossible) this.#trail.push(() => this.#impossible.delete(left.key));
    return impossible;
  }

  /** As `isImpossible`, for something inside: one schema alone hardly ever contradicts itself, so there it is a short look. */
  *#isHopeless(inner: Case, at: At): Showing {
    if (budget.shouldYield()) yield;
    const { types, values } = factsOf(inner);
    if (types === 0 || values?.length === 0) return true;
    return inner.shapes.length + inner.none.length > 1 && (yield* this.isImpossible(inner, at));
  }

  *#contradicts(left: Case, types: number, { view, depth }: At): Showing {
    const { required, minItems } = factsOf(left);
    const at = { view, depth: depth + 1 };
    let rest = types;
    if ((rest & TYPE.object) !== 0) {
      for (const name of required) {
        if (!(yield* this.#isHopeless(left.member(name), at))) continue;
        rest &= ~TYPE.object;
        break;
      }
    }
    if ((rest & TYPE.array) !== 0 && minItems > 0 && (yield* this.#isHopeless(left.item(0), at))) {
      rest &= ~TYPE.array;
    }
    if (rest === 0) return true;
    const narrowed = rest === left.types ? left : left.with({ types: rest });
    const place = { parent: undefined, step: "", left: narrowed };
    const goal = { left: narrowed, strict: true, view, depth, brief: true, place, findings: [] };
    for (const right of narrowed.none) if (yield* this.prove({ ...goal, right })) return true;
    for (const choice of narrowed.choices) {
      if (yield* this.#areImpossible(narrowed.ways(choice), { view, depth })) return true;
    }
    return false;
  }

  *#areImpossible(ways: Iterable<Case>, at: At): Showing {
    for (const way of ways) if (!(yield* this.isImpossible(way, at))) return false;
    return true;
  }

  member(goal: Goal, name: string, right: SchemaNode, left = goal.left.member(name)): Goal {
    const place = { parent: goal.place, step: name, left };
    return { ...goal, left, right, view: this.#views.member(goal.view, name), depth: goal.depth + 1, place };
  }

  item(goal: Goal, index: number, right: SchemaNode, left = goal.left.item(index)): Goal {
    const place = { parent: goal.place, step: index, left };
    return { ...goal, left, right, view: this.#views.item(goal.view, index), depth: goal.depth + 1, place };
  }

  mentions(view: At["view"], name: string): boolean {
    return this.#views.mentions(view, name);
  }

  #tasksOf(right: SchemaNode): readonly KeywordRule[] {
    let tasks = this.#tasks.get(right);
    if (tasks === undefined) {
      const values = right.keywords.flatMap((keyword) => valueTask(keyword) ?? []);
      tasks = [...values, ...objectTasks(right), ...arrayTasks(right), ...choiceTasks(right)];
      this.#tasks.set(right, tasks);
    }
    return tasks;
  }
}

/** The choice to go through for a task: where that has branches, the one with the most ways, which may be the same ones. */
function choiceFor({ choices }: Case, { branches }: KeywordRule): Choice | undefined {
  if (branches === undefined) return choices[0];
  return choices.toSorted((one, other) => other.count - one.count)[0];
}

/** One for each place of the schema: where many goals come to the same one, its findings would double at each of them. */
function distinct(found: readonly Finding[]): Finding[] {
  return [...new Map(found.map((one) => [`${one.right.id} ${one.keyword} ${one.part ?? ""}`, one])).values()];
}

function isAnything({ shapes, none, types }: Case): boolean {
  return shapes.length === 0 && none.length === 0 && types === ANY;
}
