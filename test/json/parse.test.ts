import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseText } from "../../src/json/parse.ts";

/** Writes each character of a text as an escape. */
const escaped = (text: string): string =>
  `"${text.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)}"`;

/** Writes a value with its names, and its texts, as escapes. */
function written(value: unknown): string {
  if (typeof value === "string") return escaped(value);
  if (Array.isArray(value)) return `[ ${value.map(written).join(" ,")}\n]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${escaped(name)} :\t${written(member)}`);
  return `{ ${members.join(" ,\r\n")} }`;
}

describe("a text of JSON", () => {
  test("keeps the names that it has escaped, whatever was parsed before it", () => {
    for (const [before, text, value] of [
      [String.raw`{"id":1,"gr\\u0":1}`, String.raw`{"id":1,"gr\u00f6\u00dfe":5}`, { id: 1, größe: 5 }],
      [String.raw`{"h":[],"\\":0}`, String.raw`{"h":1,"\"":2}`, { h: 1, '"': 2 }],
    ] as const) {
      JSON.parse(before);
      expect(parseText(text)).toEqual(value);
    }
  });

  test("has the value that it has without escapes", () => {
    const names = fc.string({ unit: fc.constantFrom("a", "\\", '"', "\n", "ö", "u", "0") });
    const json = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.jsonValue({ maxDepth: 0 }),
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(names, tie("value"), { maxKeys: 3, noNullPrototype: true }),
      ),
    })).value;
    fc.assert(
      fc.property(json, (value) => {
        const own = structuredClone(value);
        expect(parseText(written(value))).toEqual(JSON.parse(JSON.stringify(own)));
      }),
    );
  });

  test("has names of objects as members like any other, and the last of two of one name", () => {
    const value = parseText(String.raw`{"\u005f_proto__":{"x":1},"\u0061":1,"a":2}`) as object;
    expect(Object.entries(value)).toEqual([
      ["__proto__", { x: 1 }],
      ["a", 2],
    ]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });

  test.each(['{"\\u0061":}', '{"\\u0061"', '{"\\u0061":1} x', '"\\', ""])(
    "that is none is refused: %s",
    (text) => {
      expect(() => parseText(text)).toThrow(SyntaxError);
    },
  );
});
