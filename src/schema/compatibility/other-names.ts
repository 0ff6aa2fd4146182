import type { Task } from "../task.ts";
import { accepts } from "./accepts.ts";
import { Case } from "./case.ts";
import { factsOf } from "./facts.ts";
import type { Goal, Prover } from "./goal.ts";
import type { Shape } from "./shape.ts";
import type { TextSearch } from "./text-search.ts";

/** Members whose names no schema lists, told apart by the patterns their names match. */
export interface OtherNames {
  readonly matches: readonly string[];
  /** One such name, where one was found. */
  readonly name: string | undefined;
  /** What such a member is. */
  readonly left: Case;
  goal(goal: Goal, prover: Prover, right: Shape): Goal;
}

/** Beyond this many patterns the ways to match them are too many; nothing is taken for granted then. */
const MAX_PATTERNS = 4;
const KINDS_PER_STEP = 50;
/** Names of members that no schema has, for payloads that show something. */
const UNUSUAL = ["unlisted", "unlisted1", "another-name", "zz"];

const knownNames = new WeakMap<Case, Map<Shape, OtherNames[]>>();

/** The kinds of names that neither the case nor the schema lists. */
export function* otherNames(left: Case, right: Shape, texts: TextSearch): Task<OtherNames[]> {
  let byShape = knownNames.get(left);
  if (byShape === undefined) knownNames.set(left, (byShape = new Map()));
  const found = byShape.get(right) ?? (yield* kinds(left, right, texts));
  byShape.set(right, found);
  return found;
}

function* kinds(left: Case, right: Shape, texts: TextSearch): Task<OtherNames[]> {
  const names = factsOf(left.name());
  if (names.types === 0 || names.values !== undefined) return [];
  const all = [...left.shapes, right];
  const patterns = [...new Set(all.flatMap((shape) => shape.patterns.map(({ pattern }) => pattern)))];
  const listed = new Set(all.flatMap(({ properties }) => [...properties.keys()]));
  if (patterns.length > MAX_PATTERNS) return yield* coarseKinds(left, right, patterns);
  const found: OtherNames[] = [];
  for (let bits = 0; bits < 1 << patterns.length; bits++) {
    const matches = patterns.filter((_, index) => (bits & (1 << index)) !== 0);
    const text = yield* texts.find({
      matching: [...names.patterns, ...matches],
      notMatching: patterns.filter((pattern) => !matches.includes(pattern)),
      minLength: names.minLength,
      maxLength: names.maxLength,
    });
    if (text === "none") continue;
    const usual = UNUSUAL.find((name) => !listed.has(name) && fits(all, name, matches) && isName(left, name));
    const sample = usual ?? (text !== "unknown" && !listed.has(text.text) ? text.text : undefined);
    const inner = new Case({ all: left.shapes.flatMap((shape) => held(shape, matches)) });
    found.push({ name: sample, matches, left: inner, goal: goalFor(sample, inner, left) });
  }
  return found;
}

/** What a member is held to whose name matches these patterns and no other. */
function held(shape: Shape, matches: readonly string[]): Shape[] {
  const found = shape.patterns.filter(({ pattern }) => matches.includes(pattern)).map((one) => one.shape);
  if (found.length === 0 && shape.additionalProperties !== undefined) return [shape.additionalProperties];
  return found;
}

/**
 * With too many patterns to tell all ways apart: the names that match one of them, whatever else they match, and those that
 * match none of the schema's. Only what holds for all such names is known.
 */
function* coarseKinds(left: Case, right: Shape, patterns: readonly string[]): Task<OtherNames[]> {
  const certain = left.shapes.filter((shape) => shape.patterns.length === 0);
  const ofRight = new Set(right.patterns.map(({ pattern }) => pattern));
  const unmatched = left.shapes.filter((shape) =>
    shape.patterns.every(({ pattern }) => ofRight.has(pattern)),
  );
  const matched = new Map<string, Shape[]>();
  for (const one of left.shapes.flatMap((shape) => shape.patterns)) {
    matched.set(one.pattern, [...(matched.get(one.pattern) ?? []), one.shape]);
  }
  const coarse = (matches: readonly string[], shapes: readonly Shape[]): OtherNames => {
    const inner = new Case({ all: shapes });
    return { name: undefined, matches, left: inner, goal: goalFor(undefined, inner, left) };
  };
  const found = [coarse([], additional(unmatched))];
  for (const pattern of patterns) {
    if (found.length % KINDS_PER_STEP === 0) yield;
    found.push(coarse([pattern], [...additional(certain), ...(matched.get(pattern) ?? [])]));
  }
  return found;
}

function additional(shapes: readonly Shape[]): Shape[] {
  return shapes.flatMap(({ additionalProperties }) => additionalProperties ?? []);
}

/** The goal about one of several names, which stands for the others. */
function goalFor(name: string | undefined, inner: Case, around: Case): OtherNames["goal"] {
  return (goal, prover, right) => {
    const one = prover.member(goal, name ?? "", right, inner);
    // What the old schema mentions further inside must be the same for all of them.
    const isTypical = name !== undefined && goal.view.shapes.every((shape) => isAmong(shape, around.shapes));
    return isTypical ? one : { ...one, strict: true };
  };
}

/** Whether some of the schemas list all the names and patterns that this one lists. */
function isAmong({ properties, patterns }: Shape, shapes: readonly Shape[]): boolean {
  return (
    [...properties.keys()].every((name) => shapes.some((shape) => shape.properties.has(name))) &&
    patterns.every(({ pattern }) =>
      shapes.some((shape) => shape.patterns.some((one) => one.pattern === pattern)),
    )
  );
}

function fits(shapes: readonly Shape[], name: string, matches: readonly string[]): boolean {
  return shapes.every((shape) =>
    shape.patterns.every(({ pattern, test }) => test(name) === matches.includes(pattern)),
  );
}

function isName(left: Case, name: string): boolean {
  return left.name().shapes.every((shape) => accepts(shape, name));
}
