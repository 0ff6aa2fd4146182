import { pointerTo } from "../field-path.ts";
import { isObject } from "../keywords.ts";
import type { Source } from "./source.ts";

/** What a schema of 2020-12 and those it applies to the same value have looked at among the members of an object. */
export interface Evaluated {
  readonly names: ReadonlySet<string>;
  readonly patterns: ReadonlySet<string>;
  /** There is nothing left that was not looked at. */
  readonly all: boolean;
  /** It is for each value the same, whichever branches that value takes. */
  readonly isSure: boolean;
}

const ALL = "all";
const NAME = "name ";
const PATTERN = "pattern ";
const TOO_MANY = "too many";

/** Places that are looked at: references can go on for longer than the stack does. */
const MOST_PLACES = 2_000;
const BRANCH_LISTS = ["anyOf", "oneOf"];
const BRANCHES = ["if", "then", "else"];
const BRANCH_MAPS = ["dependentSchemas", "dependencies"];

export function evaluatedBy(source: Source, pointer: string): Evaluated {
  const always = new Set<string>();
  const perhaps = new Set<string>();
  const seen = new Set<string>();
  const visit = (place: string, found: Set<string>): void => {
    const key = `${found === always ? "always" : "perhaps"} ${place}`;
    const schema = source.at(place);
    if (seen.has(key) || !isObject(schema)) return;
    seen.add(key);
    if (seen.size > MOST_PLACES) perhaps.add(TOO_MANY);
    if (perhaps.has(TOO_MANY)) return;
    if (typeof schema["$ref"] === "string") {
      visit(source.target(schema["$ref"], place), found);
      if (source.dialectAt(place) === "draft-07") return;
    }
    for (const name of keysOf(schema["properties"])) found.add(NAME + name);
    for (const name of keysOf(schema["patternProperties"])) found.add(PATTERN + name);
    const others =
      place === pointer ? ["additionalProperties"] : ["additionalProperties", "unevaluatedProperties"];
    if (others.some((keyword) => schema[keyword] !== undefined)) found.add(ALL);
    const below = (steps: readonly (string | number)[], into: Set<string>): void =>
      visit(steps.reduce<string>(pointerTo, place), into);
    for (const index of keysOf(schema["allOf"])) below(["allOf", index], found);
    for (const keyword of BRANCHES) if (schema[keyword] !== undefined) below([keyword], perhaps);
    for (const keyword of [...BRANCH_LISTS, ...BRANCH_MAPS]) {
      for (const step of keysOf(schema[keyword])) below([keyword, step], perhaps);
    }
  };
  visit(pointer, always);
  const textsOf = (kind: string): ReadonlySet<string> =>
    new Set([...always].filter((one) => one.startsWith(kind)).map((one) => one.slice(kind.length)));
  const all = always.has(ALL);
  return {
    names: textsOf(NAME),
    patterns: textsOf(PATTERN),
    all,
    isSure: all || [...perhaps].every((one) => always.has(one)),
  };
}

function keysOf(value: unknown): readonly string[] {
  return typeof value === "object" && value !== null ? Object.keys(value) : [];
}
