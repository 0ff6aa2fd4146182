import { expect, test } from "vitest";
import { differencesOf } from "../../src/schema/differences.ts";

const added = (pointer: string) => ({ kind: "added", pointer });
const removed = (pointer: string) => ({ kind: "removed", pointer });
const changed = (pointer: string) => ({ kind: "changed", pointer });

test.each([
  ["nothing", { a: 1, b: [1] }, { b: [1], a: 1 }, []],
  ["a value", { minimum: 0 }, { minimum: 18 }, [changed("/minimum")]],
  ["a member", { type: "object" }, { title: "x" }, [removed("/type"), added("/title")]],
  [
    "a member deep inside, with a name that a pointer escapes",
    { properties: { "a/b~c": { type: "string" } } },
    { properties: { "a/b~c": { type: "string", minLength: 1 } } },
    [added("/properties/a~1b~0c/minLength")],
  ],
  ["an inherited name", {}, { toString: 1 }, [added("/toString")]],
  [
    "a list of names, in whatever order",
    { required: ["a", "b", "c"] },
    { required: ["c", "d", "a"] },
    [removed("/required/1"), added("/required/1")],
  ],
  ["the order of a list", { default: [1, 2] }, { default: [2, 1] }, [changed("/default")]],
  ["a value's double", { enum: [1] }, { enum: [1, 1] }, [changed("/enum")]],
  ["the first of a list", { enum: [] }, { enum: [1] }, [added("/enum/0")]],
  [
    "a list of schemas, place by place",
    { allOf: [{ minimum: 1 }, { maximum: 9 }] },
    { allOf: [{ minimum: 2 }] },
    [changed("/allOf/0/minimum"), removed("/allOf/1")],
  ],
  ["the kind of a value", { items: {} }, { items: [{}] }, [changed("/items")]],
  ["all of it", {}, [], [changed("")]],
])("%s", (_, before, after, differences) => {
  expect(differencesOf(before, after)).toEqual(differences);
});
