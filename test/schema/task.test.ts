import { expect, test } from "vitest";
import { checkSchemaSteps, checkSchema } from "../../src/schema/check.ts";
import type { Steps } from "../../src/runtime/yielding.ts";
import { SCHEMA_LIMITS } from "../../src/schema/limits.ts";
import { compileSchema, compileSchemaSteps } from "../../src/schema/validate/compile.ts";
import { members } from "./makers.ts";

const wide = (type: string, count = 300) => ({ properties: members(count, () => ({ type })) });
const repeating = compileSchema({ uniqueItems: true });

/** Does a task step by step, with a check of something else between each two, as a server would. */
function among<T>(task: Steps<T>): { readonly answer: T; readonly steps: number } {
  for (let steps = 1; ; steps++) {
    const { done, value } = task.next();
    if (done === true) return { answer: value, steps };
    // Uses the same budget and the same cache.
    expect(repeating.conforms([{ a: steps }, { a: steps }], 5)).toBeUndefined();
  }
}

test("a schema is checked and compiled in steps", () => {
  const checked = among(checkSchemaSteps({ ...wide("string"), nullable: true }));
  expect(checked.answer).toEqual(checkSchema({ ...wide("string"), nullable: true }));
  expect(checked.answer.warnings).toHaveLength(1);
  expect(checked.steps).toBeGreaterThan(3);
  const compiled = among(compileSchemaSteps(wide("string")));
  expect(compiled.steps).toBeGreaterThan(3);
  expect(compiled.answer.validate({ p0: "", p299: 5 })).toMatchObject({ field: "p299" });
});

test("a refused schema is refused in steps as well, with its place", () => {
  const broken = { ...wide("string"), anyOf: [{ pattern: "(" }] };
  expect(() => among(checkSchemaSteps(broken, "filter"))).toThrow("filter.anyOf[0].pattern");
});

test("a pattern that takes the whole budget takes it in a hundred steps", () => {
  const schemata = { properties: { a: { pattern: "^(.{0,40}[a-z]{3}|x){0,20}$" } } };
  const task = checkSchemaSteps(schemata);
  let steps = 0;
  const all = (): void => {
    for (; task.next().done !== true; steps++);
  };
  expect(all).toThrow("takes too many states");
  // A step does little more than the ten thousand units it may.
  expect(steps).toBeGreaterThan(SCHEMA_LIMITS.automatonSteps / 12_000);
});
