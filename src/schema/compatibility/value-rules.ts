import { INTEGER_FORMATS } from "../formats.ts";
import { isMultipleOf } from "../multiple-of.ts";
import { factsOf, wholeRange } from "./facts.ts";
import type { Facts } from "./facts.ts";
import type { Showing, KeywordRule } from "./goal.ts";
import type { TextSearch } from "./text-search.ts";
import { NUMBER, TYPE, typesNamed } from "./types.ts";

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
