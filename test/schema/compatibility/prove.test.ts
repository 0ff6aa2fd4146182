import { expect, test } from "vitest";
import { StructuralProver } from "../../../src/schema/compatibility/prover.ts";
import { Shape } from "../../../src/schema/compatibility/shape.ts";
import { runSync } from "../../../src/runtime/yielding.ts";
import { refillBudget } from "../../../src/schema/limits.ts";

// Shapes made by hand: a document that refers to itself without going deeper into the payload is refused before it comes
// to a comparison, and the prover must not rely on that.

let ids = 0;
function shape(side: "old" | "new", keywords: readonly string[]): Shape {
  const made = new Shape(ids++, side, `/${ids}`, {});
  made.keywords.push(...keywords);
  return made;
}

function findings(left: Shape, right: Shape): number {
  refillBudget();
  return runSync(new StructuralProver("producer", left).compare(left, right)).length;
}

test("what comes back to itself is taken to hold only where it went deeper into the payload", () => {
  const left = shape("old", ["properties"]);
  left.properties.set("a", left);

  const sideways = shape("new", ["allOf"]);
  const back = shape("new", ["allOf"]);
  sideways.allOf.push(back);
  back.allOf.push(sideways);
  expect(findings(left, sideways)).toBeGreaterThan(0);

  const deeper = shape("new", ["allOf"]);
  const inside = shape("new", ["properties"]);
  deeper.allOf.push(inside);
  inside.properties.set("a", deeper);
  expect(findings(left, deeper)).toBe(0);
});
