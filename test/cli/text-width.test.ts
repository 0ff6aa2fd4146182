import { expect, test } from "vitest";
import { textWidth, truncate, wrap } from "../../src/cli/io/text.ts";

test.each([
  ["order.created", 13],
  ["", 0],
  ["注文", 4],
  ["e\u0301", 1],
  ["👍🏽", 2],
  ["👩‍👩‍👧", 2],
  ["🇩🇪", 2],
  ["ｆｕｌｌ", 8],
  ["zero\u200bwidth", 9],
])("%s fills %i cells", (text, cells) => {
  expect(textWidth(text)).toBe(cells);
});

test.each([
  ["order.created", 13, "order.created"],
  ["order.created", 8, "order.c…"],
  ["注文注文", 6, "注文…"],
  ["注文注文", 5, "注文…"],
  ["👩‍👩‍👧👩‍👩‍👧", 3, "👩‍👩‍👧…"],
  ["abc", 0, ""],
])("%s in %i cells is %s", (text, cells, cut) => {
  expect(truncate(text, cells)).toBe(cut);
  expect(textWidth(truncate(text, cells))).toBeLessThanOrEqual(cells);
});

test("text is wrapped at spaces, and inside words only where one is too long", () => {
  expect(wrap("one two three", 8)).toEqual(["one two", "three"]);
  expect(wrap("https://example.com/hooks", 10)).toEqual(["https://ex", "ample.com/", "hooks"]);
  expect(wrap("a 注文注文注文 b", 6)).toEqual(["a", "注文注", "文注文", "b"]);
  expect(wrap("", 6)).toEqual([""]);
});
