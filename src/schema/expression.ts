import { RE2JS } from "re2js";
import { patternCost } from "./pattern-cost.ts";
import { PatternSyntaxError, toRe2Syntax } from "./pattern-syntax.ts";
import { readPattern } from "./sample/pattern-syntax-tree.ts";

/** Some 30 ms on a slow machine. RE2 itself only bounds how often something is repeated, to a thousand times. */
const MOST_INSTRUCTIONS = 20_000;
/** `^\p{L}{1000}$` has half of it; to tell its characters apart takes 10 ms. */
const MOST_RANGES = 1_500_000;
/** Some 20 ms; `^\p{L}{1,200}$`, as it may stand for a name, has a third of it. */
const MOST_MERGED = 1_000_000;

/**
 * RE2's expression for a pattern of ECMA-262. It is compiled in one go, so patterns of which that would take long are
 * refused: a thousand characters repeated a thousand times take seconds.
 * @throws `PatternSyntaxError` with a sentence part on why a pattern cannot be used
 */
export function expressionOf(pattern: string): RE2JS {
  const source = toRe2Syntax(pattern);
  const { instructions, ranges, merged } = patternCost(readPattern(source));
  if (instructions > MOST_INSTRUCTIONS || ranges > MOST_RANGES) {
    throw new PatternSyntaxError("is too long once its counted repetitions are written out; shorten them");
  }
  return parse(merged > MOST_MERGED ? withoutOnePass(source) : source);
}

/**
 * Says the same in a way that re2js does not try to match in one pass: to find out whether it could takes time in the cube
 * of the optional parts in a row. It does so only where a pattern begins with `^`.
 */
function withoutOnePass(source: string): string {
  return `(?:$)?(?:${source})`;
}

function parse(source: string): RE2JS {
  try {
    return RE2JS.compile(source);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "";
    if (reason.includes("repeat count"))
      throw new PatternSyntaxError("repeats something more than 1,000 times");
    throw new PatternSyntaxError(`cannot be used: ${reason.replace(/^error parsing regexp: /, "")}`);
  }
}
