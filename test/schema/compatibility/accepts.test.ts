import * as fc from "fast-check";
import { expect, test } from "vitest";
import { lengthOf, someOf } from "../../faults/length.ts";
import { matches } from "../../../src/schema/validate/evaluate.ts";
import { budget, VALIDATION_STEPS } from "../../../src/schema/limits.ts";
import { readSchema } from "../../../src/schema/read.ts";
import { SeededRandom } from "../../../src/schema/generate/seeded-random.ts";
import { compileSchema } from "../../../src/schema/validate/compile.ts";
import { githubTypes } from "../../support/github.ts";
import { ifTaken } from "../refused.ts";
import { readerOf } from "./judge.ts";
import { payloadFor } from "./random-payloads.ts";
import { anyDocument, type Json } from "./random-schemas.ts";

const lengths = lengthOf("schema/compatibility/accepts");

const root = (schema: Json) => readSchema(schema).root;

test("evreg's reading of a schema accepts exactly what the compiled schema accepts", () => {
  const property = fc.property(anyDocument, fc.nat(), (schema, seed) => {
    const asIs = ifTaken(() => compileSchema(schema));
    const reader = ifTaken(() => compileSchema(readerOf(schema)));
    fc.pre(asIs !== undefined && reader !== undefined);
    const read = root(schema);
    const random = new SeededRandom(seed, 0);
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
