import { assert, jsonValue, property, string } from "fast-check";
import { expect, test } from "vitest";
import { escapeControlInJson, escapeControl, escapeControlKeepingLines } from "../../src/cli/io/text.ts";

// Everything a terminal may act on instead of showing it.
// oxlint-disable-next-line no-control-regex
const ACTING = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

test("printed lines contain nothing that controls a terminal", () => {
  assert(
    property(string({ unit: "binary" }), (text) => {
      expect(escapeControl(text)).not.toMatch(ACTING);
      expect(escapeControlKeepingLines(text).replaceAll("\n", "")).not.toMatch(ACTING);
    }),
  );
});

test("JSON made printable is still the same document", () => {
  assert(
    property(jsonValue({ stringUnit: "binary" }), (value) => {
      const json = JSON.stringify(value);
      expect(JSON.parse(escapeControlInJson(json))).toEqual(JSON.parse(json));
      expect(escapeControlInJson(json)).not.toMatch(ACTING);
    }),
  );
});

test("escaped text can still be recognised", () => {
  expect(escapeControl("a\u001b[31mb\r\n\tc\u0000")).toBe("a\\e[31mb\\r\\n\\tc\\u0000");
  expect(escapeControl("naïve 注文 👍🏽")).toBe("naïve 注文 👍🏽");
});
