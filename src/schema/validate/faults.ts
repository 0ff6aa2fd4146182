import { ASSERTIONS_FIRST, type JsonObject } from "../keywords.ts";
import { MAX_FAILURES, spend } from "../limits.ts";
import { memoize } from "../memoize.ts";
import type { SchemaNode } from "../node.ts";
import type { FieldPath } from "../../json/field-path.ts";
import { quoted, requirementOf } from "./errors.ts";
import { has, isAbout, isListed, matches, matchesKeyword } from "./evaluate.ts";
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

/** Where in the value something is, and how deep faults are looked for. */
interface ValuePlace {
  readonly parent: ValuePlace | undefined;
  readonly step: string | number;
  readonly depth: number;
  readonly deepest: number;
}

const ROOT: ValuePlace = { parent: undefined, step: "", depth: 0, deepest: Infinity };

/** Everything that is wrong with a value, one for each keyword and place; of `anyOf` and `oneOf` what the likeliest branch says. */
export function* faultsIn(node: SchemaNode, value: unknown, at = ROOT): Generator<Fault, void> {
  spend(1);
  if (at.depth > at.deepest) return;
  const { resolved } = node;
  if (resolved.allowsNone) yield fault(value, at, "false", false, "is not allowed");
  for (const keyword of inOrder(resolved)) {
    if (!isAbout(keyword, value)) continue;
    const faults = INSIDE[keyword];
    if (faults !== undefined) yield* faults(value as never, resolved, at);
    else if (!matchesKeyword(resolved, keyword, value)) yield faultOf(resolved, keyword, value, at);
  }
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
  return { parent: at, step, depth: at.depth + 1, deepest: at.deepest };
}

type Faults = Generator<Fault, void>;

/** Keywords whose faults are at more places than one, or in a schema inside. */
const INSIDE: Readonly<Record<string, (value: never, node: SchemaNode, at: ValuePlace) => Faults>> = {
  *uniqueItems(value: readonly unknown[], _node, at) {
    const second = firstRepeated(value);
    if (second < 0) return;
    const places = `items ${firstEqual(value, second)} and ${second}`;
    yield fault(value, at, "uniqueItems", true, `must not hold the same item twice (${places})`);
  },
  *items(value: readonly unknown[], { items, tuple }, at) {
    const end = Math.min(value.length, tuple?.length ?? Infinity);
    for (let index = 0; index < end; index++) {
      yield* faultsIn(tuple?.[index] ?? items!, value[index], inside(at, index));
    }
  },
  *additionalItems(value: readonly unknown[], { tuple = [], additionalItems: inner }, at) {
    for (let index = tuple.length; index < value.length && !inner!.allowsNone; index++) {
      yield* faultsIn(inner!, value[index], inside(at, index));
    }
    if (inner!.allowsNone && value.length > tuple.length) {
      yield fault(value, at, "maxItems", tuple.length, requirementOf("maxItems", tuple.length)!);
    }
  },
  *required(value: JsonObject, { required }, at) {
    yield* missing(value, required, at, "is required");
  },
  *propertyNames(value: JsonObject, { propertyNames }, at) {
    for (const name of namesOf(value)) {
      if (matches(propertyNames!, name)) continue;
      yield fault(
        value[name],
        inside(at, name),
        "propertyNames",
        name,
        "is not a name a property may have here",
      );
    }
  },
  *additionalProperties(value: JsonObject, node, at) {
    const inner = node.additionalProperties!;
    for (const name of namesOf(value)) {
      if (isListed(node, name)) continue;
      if (!inner.allowsNone) yield* faultsIn(inner, value[name], inside(at, name));
      else yield fault(value[name], inside(at, name), "false", false, "is not a known property");
    }
  },
  *dependencies(value: JsonObject, { dependentNames, dependentSchemas }, at) {
    for (const [name, needed] of dependentNames) {
      if (!has(value, name)) continue;
      yield* missing(value, needed, at, `is required when ${quoted(name)} is present`);
    }
    for (const [name, inner] of dependentSchemas) {
      if (has(value, name)) yield* faultsIn(inner, value, at);
    }
  },
  *properties(value: JsonObject, { properties }, at) {
    for (const [name, inner] of properties) {
      if (has(value, name)) yield* faultsIn(inner, value[name], inside(at, name));
    }
  },
  *patternProperties(value: JsonObject, node, at) {
    for (const name of namesOf(value)) {
      for (const inner of node.patternNodes(name)) yield* faultsIn(inner, value[name], inside(at, name));
    }
  },
  *allOf(value, { allOf }, at) {
    for (const inner of allOf) yield* faultsIn(inner, value, at);
  },
  *if(value, node, at) {
    const next = matches(node.if!, value) ? node.then : node.else;
    if (next !== undefined) yield* faultsIn(next, value, at);
  },
  *anyOf(value, { anyOf }, at) {
    if (!anyOf.some((branch) => matches(branch, value)))
      yield faultOfBranches(anyOf, "at least one", value, at);
  },
  *oneOf(value, { oneOf }, at) {
    const count = oneOf.filter((branch) => matches(branch, value)).length;
    const several = "must match only one of the allowed forms, but matches several";
    if (count === 0) yield faultOfBranches(oneOf, "one", value, at);
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
): Fault {
  const shallow = { ...at, deepest: Math.min(at.depth + 1, at.deepest) };
  const misfits = branches.map((branch) => misfitIn(faultsOf(branch, value, shallow), at.depth));
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
    const faults = weightOf(misfits[index]) === least ? faultsOf(branch, value, at) : [];
    const depth = Math.max(...faults.map(({ path }) => path.length));
    const shown = misfits[index] ?? faults.find(({ path }) => path.length === depth);
    // What is wrong may be deeper than it is looked for.
    return shown === undefined || faults.length === 0 ? [] : { shown, depth, count: faults.length };
  });
  const [best, second] = ranked.toSorted((one, other) => other.depth - one.depth || one.count - other.count);
  if (best !== undefined && (best.depth > at.depth || second === undefined)) return best.shown;
  return fault(value, at, "anyOf", branches, `must match ${some} of the allowed forms`);
}

function faultsOf(branch: SchemaNode, value: unknown, at: ValuePlace): readonly Fault[] {
  const faults: Fault[] = [];
  for (const one of faultsIn(branch, value, at)) if (faults.push(one) === MAX_FAILURES) break;
  return faults;
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
