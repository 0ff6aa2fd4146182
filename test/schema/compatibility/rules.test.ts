import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { checkSchema } from "../../../src/schema/check.ts";
import { compare } from "../../../src/schema/compatibility/compare.ts";
import { CHOICE_CASES } from "./choice-cases.ts";
import { OBJECT_CASES } from "./object-cases.ts";
import type { RuleCase } from "./rule-cases.ts";
import { VALUE_CASES } from "./value-cases.ts";

const CASES: readonly RuleCase[] = [...VALUE_CASES, ...OBJECT_CASES, ...CHOICE_CASES];

interface Row {
  readonly rule: string;
  readonly producer: boolean;
  readonly consumer: boolean;
}

/** The rows of the table in the documentation: it is what the cases are held to. */
function documented(): Row[] {
  const page = readFileSync(new URL("../../../docs/compatibility.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| (.+?) +\| (passes|breaks) +\| (passes|breaks) +\|$/gm)];
  return rows.map(([, rule = "", producer, consumer]) => ({
    rule,
    producer: producer === "breaks",
    consumer: consumer === "breaks",
  }));
}

const rows = documented();

test("each case belongs to a row of the table, and each row has a case", () => {
  expect([...new Set(CASES.map(([rule]) => rule))].toSorted()).toEqual(
    rows.map(({ rule }) => rule).toSorted(),
  );
  expect(CASES.length).toBeGreaterThanOrEqual(150);
});

describe.each(rows)("$rule", ({ rule, producer, consumer }) => {
  const cases = CASES.filter(([of]) => of === rule).map((one, index) => ({ one, index }));
  const breaks = { producer, consumer };

  test.each(cases)("for producers, case $index", ({ one: [, old, next, pointer] }) => {
    check("producer", old, next, pointer);
  });

  test.each(cases)("for consumers, case $index", ({ one: [, old, next, pointer] }) => {
    check("consumer", old, next, pointer);
  });

  test.each(cases)("for both, case $index", ({ one: [, old, next] }) => {
    const sides = new Set(compare(old, next).map(({ side }) => side));
    expect(sides).toEqual(new Set((["producer", "consumer"] as const).filter((side) => breaks[side])));
    expect(compare(old, next, { mode: "none" })).toEqual([]);
  });

  function check(
    side: "producer" | "consumer",
    old: object,
    next: object,
    pointer: string | undefined,
  ): void {
    checkSchema(old);
    checkSchema(next);
    const found = compare(old as RuleCase[1], next as RuleCase[1], { mode: side });
    expect(found.length > 0, JSON.stringify(found)).toBe(breaks[side]);
    for (const one of found) {
      expect(one).toMatchObject({
        side,
        message: expect.stringMatching(/\.$/),
        remedy: expect.stringMatching(/\.$/),
      });
    }
    if (pointer !== undefined && breaks[side]) expect(found.map((one) => one.pointer)).toContain(pointer);
  }
});
