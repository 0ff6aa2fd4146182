import * as fc from "fast-check";
import { expect, test } from "vitest";
import { lengthOf, someOf } from "../../faults/length.ts";
import { EvregError } from "../../../src/domain/error.ts";
import { runSync } from "../../../src/runtime/yielding.ts";
import { accepts } from "../../../src/schema/compatibility/evaluate.ts";
import { readingShape, ShapeIds } from "../../../src/schema/compatibility/shape.ts";
import { refillBudget } from "../../../src/schema/limits.ts";
import { readSchema } from "../../../src/schema/read.ts";
import { compileSchema, type Validator } from "../../../src/schema/validate/compile.ts";
import { githubTypes } from "../../support/github.ts";
import { readerOf } from "./judge.ts";
import { payloadFor, randomFrom } from "./random-payloads.ts";
import { anyDocument, type Json } from "./random-schemas.ts";

const lengths = lengthOf("schema/compatibility/accepts");

const shape = (schema: Json) => runSync(readingShape(readSchema(schema), "old", new ShapeIds()));

function compiled(schema: Json): Validator | undefined {
  try {
    return compileSchema(schema);
  } catch (error) {
    if (error instanceof EvregError) return undefined;
    throw error;
  }
}

test("a value is accepted exactly when the compiled schema accepts it", () => {
  const property = fc.property(anyDocument, fc.integer(), (schema, seed) => {
    const [asIs, reader] = [compiled(schema), compiled(readerOf(schema))];
    fc.pre(asIs !== undefined && reader !== undefined);
    const read = shape(schema);
    const random = randomFrom(seed);
    for (let round = 0; round < 20; round++) {
      const payload = payloadFor(schema, random);
      const told = JSON.stringify(payload);
      const [plain, lenient] = [asIs.validate(payload) === undefined, reader.validate(payload) === undefined];
      refillBudget();
      expect(accepts(read, payload), told).toBe(plain);
      expect(accepts(read, payload, true), told).toBe(lenient);
    }
  });
  fc.assert(property, { numRuns: lengths.schemas });
});

test("so it is with GitHub's schemas and recordings", () => {
  for (const { schemata, payloads, name } of someOf(githubTypes(), lengths["event types"])) {
    const [validator, read] = [compileSchema(schemata), shape(schemata)];
    for (const payload of payloads) {
      const expected = validator.validate(payload) === undefined;
      refillBudget();
      expect(accepts(read, payload), name).toBe(expected);
    }
  }
});
