import * as fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { budget, VALIDATION_STEPS } from "../../src/schema/limits.ts";
import { lengthOf } from "../faults/length.ts";
import { expressionOf, nativePattern, PatternCompiler } from "../../src/schema/patterns/compile.ts";
import { PatternSyntaxError } from "../../src/schema/patterns/syntax.ts";
import { words } from "../support/words.ts";
import { accepted, refused } from "./refused.ts";

const matches = (pattern: string, text: string) => new PatternCompiler().compile(pattern).test(text);

// A check gives its patterns a full budget; here nothing else does, and an earlier test of this process may have used it up.
beforeEach(() => void (budget.left = VALIDATION_STEPS));

describe("a pattern means what ECMA-262 says", () => {
  const cases: [string, string[], string[]][] = [
    ["a", ["a", "xay"], ["", "A"]],
    ["^[A-Z]{2}-\\d{4}$", ["AB-1234"], ["AB-1234\n", "xAB-1234"]],
    ["^\\s$", [" ", "\t", "\v", "\f", "\u00a0", "\ufeff", "\u2028", "\u3000"], ["", "x", "\u200b"]],
    ["^\\S$", ["x", "\u200b", "é", "😀"], [" ", "\u00a0", "\u2029"]],
    ["^[\\s\\d]$", ["\u00a0", "7"], ["x"]],
    ["^[^\\s]$", ["x"], ["\u00a0"]],
    ["^[\\s\\S]$", ["\n", "x", "\u00a0", "😀"], [""]],
    ["^.$", ["x", "é", "😀", "\v"], ["\n", "\r", "\u2028", "\u2029", ""]],
    ["^\\w$", ["a", "_", "9"], ["é", "-"]],
    ["^\\d$", ["3"], ["٣"]],
    ["\\bfoo\\b", ["a foo b"], ["afoob"]],
    ["^[\\b]$", ["\b"], ["b"]],
    ["^\\cA$", ["\u0001"], ["A"]],
    ["^\\u00e9\\x41$", ["éA"], ["é"]],
    ["^\\u{1F600}$", ["😀"], ["u"]],
    ["^\\ud83d\\ude00$", ["😀"], []],
    ["^[\\ud83d\\ude00-\\ud83d\\ude02]$", ["😁"], ["\ud83d"]],
    ["^\\p{L}+$", ["aé字"], ["1"]],
    ["^\\p{Letter}\\P{Lu}$", ["éé"], ["éÉ"]],
    ["^\\p{Script=Greek}$", ["λ"], ["l"]],
    ["^(?<year>\\d{4})-(?:\\d\\d)$", ["2026-01"], ["26-01"]],
    ["^[[:a]+$", ["[:a"], ["b"]],
    ["^[a\\]-]+$", ["a]-"], ["b"]],
    ["^[^]$", ["\n"], [""]],
    ["[]", [], ["", "a"]],
    ["^\\/\\.\\-\\_$", ["/.-_"], []],
    ["^\\0$", ["\u0000"], ["0"]],
    ["^a{2,3}?b*?c+?$", ["aac", "aaabcc"], ["ac"]],
    ["^\\A\\z$", ["Az"], [""]],
    ["^{}$", ["{}"], [""]],
    ["", ["", "x"], []],
    ["$^", [""], ["x"]],
    ["a|^b|$", ["xa", "b", ""], []],
  ];
  test.each(cases)("%s", (pattern, yes, no) => {
    for (const text of yes) expect([text, matches(pattern, text)]).toEqual([text, true]);
    for (const text of no) expect([text, matches(pattern, text)]).toEqual([text, false]);
  });

  test("is true of any text, for random patterns", () => {
    const escapes = words(String.raw`\s \S \d \D \w \W [\s1] [\w-] \n \b \u0061 \x31 \. \p{L}`);
    const atom = fc.constantFrom(" ", ...words("a b 1 é 😀 . [ab] [^a] [a-é]"), ...escapes);
    const piece = fc
      .tuple(atom, fc.constantFrom("", "", "*", "+", "?", "{2}", "{1,2}", "*?"))
      .map(([one, times]) => (one === "\\b" ? one : one + times));
    const sequence = fc.array(piece, { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join(""));
    const pattern = fc
      .tuple(fc.constantFrom("", "^"), sequence, sequence, fc.constantFrom("", "$"), fc.boolean())
      .map(([start, one, other, end, choice]) =>
        choice ? `${start}(?:${one}|(${other})+)${end}` : start + one + end,
      );
    const text = fc.array(
      fc.constantFrom("a", "b", "1", "é", "😀", " ", "\u00a0", "\n", "\r", "_", ".", "-", "A"),
      { maxLength: 6 },
    );
    fc.assert(
      fc.property(pattern, fc.array(text, { minLength: 5, maxLength: 5 }), (source, texts) => {
        const ours = new PatternCompiler().compile(source);
        const theirs = new RegExp(source, "u");
        for (const one of texts) {
          const string = one.join("");
          expect([source, string, ours.test(string)]).toEqual([source, string, theirs.test(string)]);
        }
      }),
      { numRuns: lengthOf("schema/pattern").patterns, seed: 23 },
    );
  });
});

describe("JavaScript's own expressions are used only where they cannot backtrack", () => {
  test.each(["^A-[0-9]{8}$", "^[a-z]+$", "^\\d{3}-\\d*", "^[\\w\\-]{1,64}$", "^ab?$", "^é.$", "^$"])(
    "%s",
    (pattern) => {
      expect(nativePattern(pattern)).toEqual(new RegExp(pattern, "u"));
    },
  );

  test.each(
    words(String.raw`
      [a-z]+$ ^a*b$ ^a+a+$ ^(a+)+$ ^a|b$ ^(?:a){2}$ ^a{1,3}b$ ^a+?b ^\w+\d+$ ^\bfoo$ ^(a)\1$ ^[a-\d]$`),
  )("not %s", (pattern) => {
    expect(nativePattern(pattern)).toBeUndefined();
  });
});

describe("a pattern that is not supported is refused in plain words", () => {
  test.each([
    ["(?=a)b", "lookahead"],
    ["(?!a)b", "lookahead"],
    ["(?<=a)b", "lookbehind"],
    ["(?<!a)b", "lookbehind"],
    ["(a)\\1", "refers back"],
    ["(?<n>a)\\k<n>", "refers back"],
    // Older dialects only, which some signs of theirs beside them tell.
    ["(a)[a-\\d]\\1", "refers back"],
    ["\\101", "a number behind a backslash"],
    ["(a)\\2", "a number behind a backslash"],
    ["\\8", "a number behind a backslash"],
    ["\\07", "a number behind a backslash"],
    ["(a)[\\1]", "a number behind a backslash"],
    ["(?:|){40}x\\8", "a number behind a backslash"],
    ["a{1,2000}", "more than 1,000 times"],
    ["((a{1,100}){1,100}){1,100}", "too long once its counted repetitions are written out"],
    ["(", "not a regular expression of ECMA-262"],
    ["a**", "not a regular expression of ECMA-262"],
    ["(?P<n>a)", "not a regular expression of ECMA-262"],
    ["(?i:a)", "sets flags"],
    ["a[ab]{900}c", "too many states"],
    ["(?:.{0,200}x){0,4}y", "too many states"],
    // A million characters, which take seconds to compile.
    [`^(${"abcdefghij".repeat(100)}){1000}$`, "too long once its counted repetitions are written out"],
    [`^(?:${"\\p{L}".repeat(40)}){100}$`, "too long once its counted repetitions are written out"],
  ])("%s", (pattern, reason) => {
    expect(() => matches(pattern, "")).toThrow(PatternSyntaxError);
    const { field, message } = refused({ properties: { a: { pattern } } });
    expect(field).toBe("schemata.properties.a.pattern");
    expect(message).toContain(reason);
    expect(refused({ patternProperties: { [pattern]: true } }).message).toContain(reason);
  });

  test("are refused too when there is too much of them in one schema", () => {
    const patterns = Array.from({ length: 80 }, (_, index) => ({ pattern: `[a-z]{${index + 100}}x$` }));
    expect(() => accepted({ allOf: patterns.slice(0, 4) })).not.toThrow();
    expect(refused({ allOf: patterns }).message).toContain("too many states");
  });
});

describe("a pattern of many optional parts in a row", () => {
  const firsts = Array.from({ length: 88 }, (_, index) => String.fromCodePoint(0x4e00 + 4 * index));
  const parts = firsts.map((first) => `[${first}-${String.fromCodePoint(first.codePointAt(0)! + 2)}]?`);
  const pattern = `^(?:${parts.join("")})z$`;
  const [first, second] = [firsts[7]!, firsts[80]!];

  test("is not compiled for one pass, as that would take cubic time", () => {
    expect(expressionOf(pattern).re2Input.onepass).toBeNull();
    expect(expressionOf("^(?:[a-c]?[d-f]?)z$").re2Input.onepass).not.toBeNull();
  });

  test.each([
    [pattern, ["z", `${firsts.join("")}z`, `${first}${second}z`]],
    [pattern, ["", "zz", `${second}${first}z`, `x${first}z`, `${first}z\n`, first]],
    [`${pattern}|^b`, [`${first}z`, "b", "bb"]],
    [`${pattern}|^b`, ["ab", first, `a${first}z`]],
  ])("means the same: %#", (either, texts) => {
    const compiled = new PatternCompiler().compile(either);
    for (const text of texts) {
      expect([text, compiled.test(text)]).toEqual([text, new RegExp(either, "u").test(text)]);
    }
  });
});

test("one pattern is never used for another", () => {
  const schema = accepted({
    properties: { a: { pattern: "^a" }, b: { pattern: "^b" } },
    patternProperties: { "^c": { pattern: "^c" } },
  });
  expect(schema.validate({ a: "a", b: "b", c1: "c" })).toBeUndefined();
  expect(schema.validate({ a: "a", b: "a" })).toMatchObject({ field: "b" });
  expect(schema.validate({ c1: "a" })).toMatchObject({ field: "c1" });
});
