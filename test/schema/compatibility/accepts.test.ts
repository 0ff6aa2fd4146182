import * as fc from "fast-check";
import { expect, test } from "vitest";
import { lengthOf, someOf } from "../../faults/length.ts";
import { EvregError } from "../../../src/domain/error.ts";
import { matches } from "../../../src/schema/validate/evaluate.ts";
import { budget, VALIDATION_STEPS } from "../../../src/schema/limits.ts";
import { readSchema } from "../../../src/schema/read.ts";
import { compileSchema, type Validator } from "../../../src/schema/validate/compile.ts";
import { githubTypes } from "../../support/github.ts";
import { readerOf } from "./judge.ts";
import { payloadFor, randomFrom } from "./random-payloads.ts";
import { anyDocument, type Json } from "./random-schemas.ts";

const lengths = lengthOf("schema/compatibility/accepts");

const root = (schema: Json) => readSchema(schema).root;

function compiled(schema: Json): Validator | undefined {
  try {
    return compileSchema(schema);
  } catch (error) {
    if (error instanceof EvregError) return undefined;
    throw error;
  }
}

test("evreg's reading of a schema accepts exactly what the compiled schema accepts", () => {
  const property = fc.property(anyDocument, fc.integer(), (schema, seed) => {
    const [asIs, reader] = [compiled(schema), compiled(readerOf(schema))];
    fc.pre(asIs !== undefined && reader !== undefined);
    const read = root(schema);
    const random = randomFrom(seed);
    for (let round = 0; round < 20; round++) {
      const payload = payloadFor(schema, random);
      const shown = JSON.stringify(payload);
      const [plain, lenient] = [asIs.validate(payload) === undefined, reader.validate(payload) === undefined];
      budget.left = VALIDATION_STEPS;
      expect(matches(read, payload), shown).toBe(plain);
      expect(matches(read, payload, true), shown).toBe(lenient);
    }
  });
  fc.assert(property, { numRuns: lengths.schemas });
});

test("the same is true of GitHub's schemas and recordings", () => {
  for (const { schemata, payloads, name } of someOf(githubTypes(), lengths["event types"])) {
    const [validator, read] = [compileSchema(schemata), root(schemata)];
    for (const payload of payloads) {
      const expected = validator.validate(payload) === undefined;
      budget.left = VALIDATION_STEPS;
      expect(matches(read, payload), name).toBe(expected);
    }
  }
});
