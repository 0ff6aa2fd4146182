import { Ajv } from "ajv";
import { expect, test } from "vitest";
import { isLong, lengthOf, report } from "../faults/length.ts";
import { MAX_FAILURES, VALIDATION_STEPS } from "../../src/schema/limits.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { compileSchema } from "../../src/schema/validate/compile.ts";
import { payloadFor } from "./compatibility/random-payloads.ts";
import { anyDocument, usualDocument } from "./compatibility/random-schemas.ts";
import { ifTaken } from "./refused.ts";
import addFormats from "ajv-formats";
import * as fc from "fast-check";

// evreg walks a schema itself, unless that is a usual one, and has patterns of its own. Ajv left alone is the judge of both.

const RUNS = lengthOf("schema/plain-ajv").schemas;
const PAYLOADS = 8;
const LONGEST_MS = 280_000;

/**
 * The same schema where Ajv 8 departs from the draft: it looks at what stands beside a `$ref`, and takes `[]` for a list that
 * holds something when another list of the payload did (draft-handrews-json-schema-01, 8.3, and -validation-01, 6.4.6).
 */
function inOtherWords(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(inOtherWords);
  if (typeof schema !== "object" || schema === null) return schema;
  const { contains, ...others } = schema as Record<string, unknown>;
  const { $ref, definitions, enum: values, const: value } = others;
  if (typeof $ref === "string") {
    return {
      allOf: [{ $ref }],
      ...(definitions === undefined ? {} : { definitions: inOtherWords(definitions) }),
    };
  }
  const said: Record<string, unknown> = Object.fromEntries(
    Object.entries(others).map(([keyword, inner]) => [keyword, inOtherWords(inner)]),
  );
  // What a schema lists is no schema.
  if (values !== undefined) said["enum"] = values;
  if (value !== undefined) said["const"] = value;
  if (contains === undefined) return said;
  const holdsNone = { type: "array", items: { not: inOtherWords(contains) } };
  return {
    allOf: [said, { not: holdsNone }],
    ...(definitions === undefined ? {} : { definitions: said["definitions"] }),
  };
}

function plain(schemata: object): (payload: unknown) => boolean {
  const ajv = new Ajv({ strict: false, strictNumbers: true, ownProperties: true, logger: false });
  // The package is CommonJS: its default export stands in a member.
  (addFormats as unknown as { default: (ajv: Ajv) => void }).default(ajv);
  const validate = ajv.compile(inOtherWords(schemata) as object);
  return (payload) => validate(payload);
}

test(
  "evreg and Ajv agree on random schemas and payloads",
  () => {
    const counts = { schemas: 0, conforming: 0, refused: 0 };
    fc.assert(
      fc.property(fc.oneof(anyDocument, usualDocument), fc.nat(), (schemata, seed) => {
        const validator = ifTaken(() => compileSchema(schemata));
        fc.pre(validator !== undefined);
        const conforms = plain(schemata);
        const random = new SeededRandom(seed);
        for (let round = 0; round < PAYLOADS; round++) {
          const payload = payloadFor(schemata, random);
          const expected = conforms(payload);
          const failure = validator.validate(payload, VALIDATION_STEPS, MAX_FAILURES);
          expect(failure === undefined, JSON.stringify(payload)).toBe(expected);
          // It also finds what does not conform.
          expect(failure?.message).not.toBe("does not conform to the schema");
          counts[expected ? "conforming" : "refused"] += 1;
        }
        counts.schemas += 1;
      }),
      { numRuns: RUNS, ...(isLong ? { interruptAfterTimeLimit: LONGEST_MS } : {}) },
    );
    // One-sided payloads would show little.
    expect(Math.min(counts.conforming, counts.refused)).toBeGreaterThan(counts.schemas / 2);
    report("as Ajv itself", counts);
  },
  LONGEST_MS + 10_000,
);
