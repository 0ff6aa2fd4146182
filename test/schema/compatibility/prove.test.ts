import { expect, test } from "vitest";
import { InclusionProver } from "../../../src/schema/compatibility/prover.ts";
import { budget, VALIDATION_STEPS } from "../../../src/schema/limits.ts";
import { SchemaNode } from "../../../src/schema/node.ts";
import { readSchema } from "../../../src/schema/read.ts";

// Nodes made by hand: a document that refers to itself without going deeper into the payload is refused before it comes
// to a comparison, and the prover must not rely on that.

const documents = { old: readSchema({}), new: readSchema({}) };

function node(side: "old" | "new", keyword: string): SchemaNode {
  return new SchemaNode(documents[side], "", { [keyword]: {} });
}

function findings(left: SchemaNode, right: SchemaNode): number {
  budget.left = VALIDATION_STEPS;
  return new InclusionProver("producer", left).compare(left, right).length;
}

test("a recursive proof may assume itself only deeper in the payload", () => {
  const left = node("old", "properties");
  left.properties = new Map([["a", left]]);

  const sideways = node("new", "allOf");
  const back = node("new", "allOf");
  sideways.allOf = [back];
  back.allOf = [sideways];
  expect(findings(left, sideways)).toBeGreaterThan(0);

  const deeper = node("new", "allOf");
  const inside = node("new", "properties");
  deeper.allOf = [inside];
  inside.properties = new Map([["a", deeper]]);
  expect(findings(left, deeper)).toBe(0);
});
