import { expect, test } from "vitest";
import { disagreements, type NodeSettings, type SetNode } from "../../src/store/postgres/nodes.ts";

function nodes(...settings: readonly NodeSettings[]): readonly SetNode[] {
  return settings.map((own, index) => ({ host: "one", pid: index + 1, settings: own }));
}

test.each<[string, readonly NodeSettings[], readonly string[]]>([
  ["one alone", [{ a: "1" }], []],
  ["all the same", [{ a: "1" }, { a: "1" }], []],
  ["a value of its own", [{ a: "1" }, { a: "2" }], ["a is 1 at one (process 1), and 2 at one (process 2)"]],
  [
    "one that does not set it, or does not know it",
    [{ a: '"30d"', b: "1" }, { a: "null", b: "1" }, { b: "1" }],
    ['a is "30d" at one (process 1), and not set at one (process 2), one (process 3)'],
  ],
  [
    "many",
    [{ a: "1" }, { a: "2" }, { a: "2" }, { a: "2" }, { a: "2" }],
    ["a is 1 at one (process 1), and 2 at one (process 2), one (process 3), one (process 4) and 1 more"],
  ],
])("of %s it is said which node has which", (_what, settings, expected) => {
  expect(disagreements(nodes(...settings))).toEqual(expected);
});
