import { expect, test } from "vitest";
import { fieldName, pathNamed } from "../../src/json/field-path.ts";

test.each([
  ["customer.country", ["customer", "country"]],
  ["lines[2].sku", ["lines", 2, "sku"]],
  ['["odd name"].x["a.b"][0]', ["odd name", "x", "a.b", 0]],
  ['["a\\"]b"]', ['a"]b']],
  ["", []],
])("%s is a place, and is read as it was written", (text, path) => {
  expect(fieldName(path)).toBe(text);
  expect(pathNamed(text)).toEqual(path);
});

test.each([".a", "a..b", "a[b]", "a]", 'a["\\x"]', "a[1", '"a"'])("%s is no place", (text) => {
  expect(pathNamed(text)).toEqual([]);
});
