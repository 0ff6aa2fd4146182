import { expect, test } from "vitest";
import { checkingSchema, checkSchema } from "../../src/schema/check.ts";
import { compileSchema, compilingSchema } from "../../src/schema/compile.ts";
import { compare, comparing } from "../../src/schema/compatibility/compare.ts";
import type { Task } from "../../src/schema/task.ts";

const wide = (type: string) => ({
  properties: Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`p${index}`, { type }])),
});
const repeating = compileSchema({ uniqueItems: true });

/** Does a task step by step, with a check of something else between each two, as a server would. */
function among<T>(task: Task<T>): { readonly answer: T; readonly steps: number } {
  for (let steps = 1; ; steps++) {
    const { done, value } = task.next();
    if (done === true) return { answer: value, steps };
    // Takes of the same budget, and makes the same memo.
    expect(repeating.conforms([{ a: steps }, { a: steps }], 5)).toBeUndefined();
  }
}

test("a schema is checked and compiled a part at a time", () => {
  const checked = among(checkingSchema({ ...wide("string"), nullable: true }));
  expect(checked.answer).toEqual(checkSchema({ ...wide("string"), nullable: true }));
  expect(checked.answer.warnings).toHaveLength(1);
  expect(checked.steps).toBeGreaterThan(300);
  const compiled = among(compilingSchema(wide("string")));
  expect(compiled.steps).toBeGreaterThan(9);
  expect(compiled.answer.validate({ p0: "", p299: 5 })).toMatchObject({ field: "p299" });
});

test("what is refused is refused in steps as well, with its place", () => {
  const broken = { ...wide("string"), anyOf: [{ pattern: "(" }] };
  expect(() => among(checkingSchema(broken, "filter"))).toThrow("filter.anyOf[0].pattern");
});

test("two schemas are compared a stretch and an example at a time, with the same verdict", () => {
  const { answer, steps } = among(comparing(wide("string"), wide("integer")));
  expect(answer).toEqual(compare(wide("string"), wide("integer")));
  const told = answer.breaks.filter(({ pointer }) => pointer !== "");
  expect(told).toHaveLength(200);
  expect(new Set(told.map(({ certainty }) => certainty))).toEqual(new Set(["proven"]));
  expect(steps).toBeGreaterThan(200);
});
