import * as fc from "fast-check";
import { expect, test } from "vitest";
import { lengthOf } from "../../faults/length.ts";
import { matches } from "../../../src/schema/validate/evaluate.ts";
import { budget, VALIDATION_STEPS } from "../../../src/schema/limits.ts";
import { readSchema } from "../../../src/schema/read.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import { compileSchema } from "../../../src/schema/validate/compile.ts";
import { ifTaken } from "../refused.ts";
import { readerOf } from "./judge.ts";
import { payloadFor } from "./random-payloads.ts";
import { anyDocument, usualDocument } from "./random-schemas.ts";

test("a walk accepts exactly what Ajv accepts, and a reader what a document that is open accepts", () => {
  const property = fc.property(fc.oneof(anyDocument, usualDocument), fc.nat(), (schema, seed) => {
    const asIs = ifTaken(() => compileSchema(schema));
    const reader = ifTaken(() => compileSchema(readerOf(schema)));
    fc.pre(asIs !== undefined && reader !== undefined);
    const { root } = readSchema(schema);
    const random = new SeededRandom(seed);
    for (let round = 0; round < 20; round++) {
      const payload = payloadFor(schema, random);
      const shown = JSON.stringify(payload);
      const [plain, lenient] = [asIs.validate(payload) === undefined, reader.validate(payload) === undefined];
      budget.left = VALIDATION_STEPS;
      expect(matches(root, payload), shown).toBe(plain);
      expect(matches(root, payload, true), shown).toBe(lenient);
    }
  });
  fc.assert(property, { numRuns: lengthOf("schema/compatibility/accepts").schemas });
});
