import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { JsonError } from "../../src/json/json-error.ts";
import type { JsonNode } from "../../src/json/nodes.ts";
import { scanJson, scanSteps } from "../../src/json/scanner.ts";

function inSteps(text: string, options = {}): { answer: JsonNode | string; steps: number } {
  let steps = 0;
  try {
    const scan = scanSteps(Buffer.from(text), options);
    for (;;) {
      steps += 1;
      const { done, value } = scan.next();
      if (done === true) return { answer: value, steps };
    }
  } catch (error) {
    return { answer: messageOf(error), steps };
  }
}

function atOnce(text: string, options = {}): JsonNode | string {
  try {
    return scanJson(Buffer.from(text), options);
  } catch (error) {
    return messageOf(error);
  }
}

function messageOf(error: unknown): string {
  if (error instanceof JsonError) return error.message;
  throw error;
}

const members = (count: number, name = (at: number) => `k${at}`): string[] =>
  Array.from({ length: count }, (_, at) => `"${name(at)}":${at}`);
const object = (...inner: string[]): string => `{${inner.join(",")}}`;
const wide = object(...members(20_000));

describe("a scan in steps gives the same result as one in one go", () => {
  test.each([
    ["an object of very many keys", wide, 4],
    ["one inside another, with more behind it", object(...members(9_000), `"in":[${wide},1]`, `"on":{}`), 6],
    ["two side by side", `[${wide},${wide}]`, 8],
    ["the last key there twice", object(...members(20_000), `"k19999":0`), 4],
    ["a key there twice in different spellings", object(...members(20_000), `"\\u006b7":0`), 4],
    ["only keys with escapes", object(...members(20_000, (at) => `\\u006b${at}`)), 4],
    ["what is wrong behind it", `[${wide},]`, 4],
    ["no end", wide.slice(0, -1), 1],
    ["a list of hundreds of thousands", `[${"{},".repeat(300_000)}[]]`, 10],
    ["a long text", `["${"x".repeat(300_000)}","${"y".repeat(300_000)}"]`, 1],
  ])("%s", (_, text, least) => {
    for (const options of [{}, { record: [8, 8] }]) {
      const { answer, steps } = inSteps(text, options);
      expect(answer).toEqual(atOnce(text, options));
      expect(steps).toBeGreaterThanOrEqual(least);
    }
  });

  test("any document", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.integer({ min: 0, max: 200 }), (text, cut) => {
        for (const each of [text, text.slice(0, Math.max(0, text.length - cut))]) {
          expect(inSteps(each, { record: [3, 3] }).answer).toEqual(atOnce(each, { record: [3, 3] }));
        }
      }),
      { numRuns: 200 },
    );
  });
});
