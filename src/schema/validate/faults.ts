import { ASSERTIONS_FIRST, type JsonObject } from "../keywords.ts";
import { MAX_FAILURES, spend } from "../limits.ts";
import { memoize } from "../memoize.ts";
import type { SchemaNode } from "../node.ts";
import type { FieldPath } from "../../json/field-path.ts";
import { quoted, requirementOf } from "./errors.ts";
import { has, isAbout, matches, matchesKeyword, visitInside } from "./evaluate.ts";
import { firstEqual, firstRepeated, namesOf } from "./values.ts";

/** What is wrong with a value. */
export interface Fault {
  readonly path: FieldPath;
  /** What is there. */
  readonly value: unknown;
  /** The keyword that the value does not keep to, and what that requires. */
  readonly keyword: string;
  readonly limit: unknown;
  /** The rest of a sentence that begins with the place. */
  readonly message: string;
}

/** Where in the value something is. */
interface ValuePlace {
  readonly parent: ValuePlace | undefined;
  readonly step: string | number;
  readonly depth: number;
}

const ROOT: ValuePlace = { parent: undefined, step: "", depth: 0 };

/** What was found so far, how many are wanted, and how deep in the value they are looked for. */
interface FaultSearch {
  readonly faults: Fault[];
  readonly most: number;
  readonly deepest: number;
}

/**
 * Finds what is wrong with a value, one fault for each keyword and place; of `anyOf` and `oneOf` what the likeliest branch says.
 * @param faults gets them as they are found, and so keeps those that were found before the steps ended
 */
export function findFaults(node: SchemaNode, value: unknown, most: number, faults: Fault[] = []): Fault[] {
  look(node, value, ROOT, { faults, most, deepest: Infinity });
  return faults;
}

/** Answers whether to go on. */
function look(node: SchemaNode, value: unknown, at: ValuePlace, search: FaultSearch): boolean {
  spend(1);
  const { faults, most, deepest } = search;
  if (at.depth > deepest) return true;
  const { resolved } = node;
  if (resolved.allowsNone) faults.push(fault(value, at, "false", false, "is not allowed"));
  for (const keyword of inOrder(resolved)) {
    if (!isAbout(keyword, value)) continue;
    const own = OWN_FAULTS[keyword];
    for (const one of own?.(value as never, resolved, at, deepest) ?? []) {
      if (faults.push(one) >= most) return false;
    }
    if (PASSED_ON.has(keyword)) {
      visitInside(resolved, keyword, value, (inner, innerValue, step) => {
        const place = step === undefined ? at : inside(at, step);
        if (keyword !== "additionalProperties" || !inner.allowsNone) {
          return look(inner, innerValue, place, search);
        }
        return faults.push(fault(innerValue, place, "false", false, "is not a known property")) < most;
      });
    } else if (own === undefined && !matchesKeyword(resolved, keyword, value)) {
      faults.push(faultOf(resolved, keyword, value, at));
    }
    if (faults.length >= most) return false;
  }
  return faults.length < most;
}

const inOrder = memoize(({ keywords }: SchemaNode) =>
  ASSERTIONS_FIRST.filter((one) => keywords.includes(one)),
);

function faultOf({ schema }: SchemaNode, keyword: string, value: unknown, at: ValuePlace): Fault {
  const limit = (schema as JsonObject)[keyword];
  const message = MESSAGES[keyword] ?? requirementOf(keyword, limit)!;
  const isTooLarge = typeof value === "number" && !Number.isFinite(value);
  return fault(value, at, keyword, limit, isTooLarge ? "must be a number that a double can hold" : message);
}

const MESSAGES: Readonly<Record<string, string>> = {
  contains: "must hold at least one item of the kind asked for",
  not: "must not be of this kind",
};

function fault(value: unknown, at: ValuePlace, keyword: string, limit: unknown, message: string): Fault {
  const path: (string | number)[] = [];
  for (let { parent, step } = at; parent !== undefined; { parent, step } = parent) path.push(step);
  return { path: path.toReversed(), value, keyword, limit, message };
}

function inside(at: ValuePlace, step: string | number): ValuePlace {
  return { parent: at, step, depth: at.depth + 1 };
}

/** Keywords whose faults are those of the schemas inside. */
const PASSED_ON: ReadonlySet<string> = new Set(
  "items additionalItems properties patternProperties additionalProperties dependencies allOf if".split(" "),
);

type Faults = Iterable<Fault>;

/** Keywords with a sentence of their own, or with faults at more places than one. */
const OWN_FAULTS: Readonly<
  Record<string, (value: never, node: SchemaNode, at: ValuePlace, deepest: number) => Faults>
> = {
  *uniqueItems(value: readonly unknown[], _node, at) {
    const second = firstRepeated(value);
    if (second < 0) return;
    const places = `items ${firstEqual(value, second)} and ${second}`;
    yield fault(value, at, "uniqueItems", true, `must not hold the same item twice (${places})`);
  },
  *required(value: JsonObject, { required }, at) {
    yield* missing(value, required, at, "is required");
  },
  *propertyNames(value: JsonObject, { propertyNames }, at) {
    for (const name of namesOf(value)) {
      const [why] = findFaults(propertyNames!, name, 1);
      if (why === undefined) continue;
      const message = `is not a name a property may have here: it ${why.message}`;
      yield fault(value[name], inside(at, name), "propertyNames", name, message);
    }
  },
  *dependencies(value: JsonObject, { dependentNames }, at) {
    for (const [name, needed] of dependentNames) {
      if (!has(value, name)) continue;
      yield* missing(value, needed, at, `is required when ${quoted(name)} is present`);
    }
  },
  *anyOf(value, { anyOf }, at, deepest) {
    if (!anyOf.some((branch) => matches(branch, value)))
      yield faultOfBranches(anyOf, "at least one", value, at, deepest);
  },
  *oneOf(value, { oneOf }, at, deepest) {
    const count = oneOf.filter((branch) => matches(branch, value)).length;
    const several = "must match only one of the allowed forms, but matches several";
    if (count === 0) yield faultOfBranches(oneOf, "one", value, at, deepest);
    else if (count > 1) yield fault(value, at, "oneOf", oneOf, several);
  },
};

function* missing(value: JsonObject, names: readonly string[], at: ValuePlace, message: string): Faults {
  for (const name of names) {
    if (!has(value, name)) yield fault(undefined, inside(at, name), "required", name, message);
  }
}

/**
 * What is wrong with a value that no branch allows. The intended branch is probably one whose type and kind fit, such as
 * `kind: {const: "circle"}`, and of these the one that got deepest into the value, with the fewest faults.
 */
function faultOfBranches(
  branches: readonly SchemaNode[],
  some: string,
  value: unknown,
  at: ValuePlace,
  deepest: number,
): Fault {
  const faultsOf = (branch: SchemaNode, levels: number): readonly Fault[] => {
    const faults: Fault[] = [];
    look(branch, value, at, { faults, most: MAX_FAILURES, deepest: Math.min(at.depth + levels, deepest) });
    return faults;
  };
  const misfits = branches.map((branch) => misfitIn(faultsOf(branch, 1), at.depth));
  const least = Math.min(...misfits.map(weightOf));
  const likeliest = misfits.filter((misfit) => misfit !== undefined && weightOf(misfit) === least) as Fault[];
  const [first] = likeliest;
  if (first?.keyword === "type") return allowing("type", likeliest, ({ limit }) => [limit].flat());
  if (likeliest.length > 1 && likeliest.every((one) => isSamePlace(one, first!))) {
    return allowing("enum", likeliest, ({ keyword, limit }) =>
      keyword === "enum" ? (limit as unknown[]) : [limit],
    );
  }
  const ranked = branches.flatMap((branch, index) => {
    const faults = weightOf(misfits[index]) === least ? faultsOf(branch, Infinity) : [];
    const depth = Math.max(...faults.map(({ path }) => path.length));
    const shown = misfits[index] ?? faults.find(({ path }) => path.length === depth);
    // What is wrong may be deeper than it is looked for.
    return shown === undefined || faults.length === 0 ? [] : { shown, depth, count: faults.length };
  });
  const [best, second] = ranked.toSorted((one, other) => other.depth - one.depth || one.count - other.count);
  if (best !== undefined && (best.depth > at.depth || second === undefined)) return best.shown;
  return fault(value, at, "anyOf", branches, `must match ${some} of the allowed forms`);
}

/**
 * The fault by which a branch is not the intended one: its type is another, or its `kind`, which the members of a value
 * tell.
 */
function misfitIn(faults: readonly Fault[], depth: number): Fault | undefined {
  return (
    faults.find(({ keyword, path }) => keyword === "type" && path.length === depth) ??
    faults.find(({ keyword, path }) => ["const", "enum"].includes(keyword) && path.length > depth)
  );
}

function weightOf(misfit: Fault | undefined): number {
  if (misfit === undefined) return 0;
  return misfit.keyword === "type" ? 2 : 1;
}

function isSamePlace({ path }: Fault, other: Fault): boolean {
  return path.length === other.path.length && path.every((step, index) => step === other.path[index]);
}

/** What several branches say of one place, together. */
function allowing(
  keyword: "type" | "enum",
  faults: readonly Fault[],
  allowedBy: (fault: Fault) => readonly unknown[],
): Fault {
  const limit = [...new Set(faults.flatMap(allowedBy))];
  return { ...faults[0]!, keyword, limit, message: requirementOf(keyword, limit)! };
}
