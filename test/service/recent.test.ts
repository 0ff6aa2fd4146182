import { expect, test } from "vitest";
import { Recent } from "../../src/runtime/lru-cache.ts";

test("keeps those used last, as many as their sizes allow", () => {
  const recent = new Recent<number>(10, (size) => size);
  recent.set("a", 4);
  recent.set("b", 4);
  expect(recent.get("a")).toBe(4);
  recent.set("c", 4);
  expect([...recent.entries()].map(([key]) => key)).toEqual(["a", "c"]);
  // The same key again takes the place of the old one.
  recent.set("c", 6);
  expect([...recent.entries()]).toEqual([
    ["a", 4],
    ["c", 6],
  ]);
  recent.delete("a");
  recent.delete("a");
  recent.set("d", 4);
  expect(recent.get("c")).toBe(6);
});

test("what is larger than all that may be kept is kept alone", () => {
  const recent = new Recent<number>(10, (size) => size);
  recent.set("a", 4);
  recent.set("large", 40);
  expect([...recent.entries()]).toEqual([["large", 40]]);
  recent.set("b", 4);
  expect([...recent.entries()]).toEqual([["b", 4]]);
});

test("without sizes, so many", () => {
  const recent = new Recent<string>(2);
  for (const key of ["a", "b", "c"]) recent.set(key, key);
  expect(recent.get("a")).toBeUndefined();
  expect(recent.get("b")).toBe("b");
});
