import { Ajv2020 } from "ajv/dist/2020.js";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { EvregError } from "../../../src/domain/error.ts";
import { toDraft7 } from "../../../src/import/draft7.ts";
import { SourceDocument, UnsupportedMessage } from "../../../src/import/source.ts";
import { checkSchema } from "../../../src/schema/check.ts";
import { compileSchema, type Validator } from "../../../src/schema/validate/compile.ts";
import { randomPayload, randomSource, type RandomSource } from "./random-sources.ts";

/** Ajv's own reading of 2020-12. */
function judgeOf(source: RandomSource): (payload: unknown) => boolean | undefined {
  const ajv = new Ajv2020({
    meta: false,
    strict: false,
    validateSchema: false,
    logger: false,
    ownProperties: true,
  });
  ajv.addSchema({ ...(counted(source) as object), $id: "http://source.example/" });
  const validate = ajv.compile({ $ref: "http://source.example/#/root" });
  return (payload) => {
    try {
      return validate(payload);
    } catch (error) {
      // Of some schemas it makes code that names what is not there, or sets a member of it.
      if (error instanceof ReferenceError || error instanceof TypeError) return undefined;
      throw error;
    }
  };
}

/** The same for Ajv, which takes an empty list for the one before where it need not count what `contains` fits. */
function counted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(counted);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([name, inner]): [string, unknown] => [name, counted(inner)]);
  const { contains, ...others } = Object.fromEntries(members);
  if (contains === undefined) return Object.fromEntries(members);
  const all = Array.isArray(others["allOf"]) ? (others["allOf"] as unknown[]) : [];
  return { ...others, allOf: [...all, { contains, maxContains: 1_000 }] };
}

const RUNS = Number(process.env["TRANSLATE_RUNS"] ?? 120);

test("a translated schema accepts what its source accepts", () => {
  const counts = { refused: 0, accepting: 0, rejecting: 0 };
  const payloads = fc.array(randomPayload, { minLength: 12, maxLength: 12 });
  fc.assert(
    fc.property(randomSource, payloads, (source, values) => {
      const validator = translatedOf(source);
      if (validator === undefined) {
        counts.refused += 1;
        return;
      }
      const judge = judgeOf(source);
      for (const value of values) {
        const verdict = judge(value);
        if (verdict === undefined) return;
        counts[verdict ? "accepting" : "rejecting"] += 1;
        expect(validator.validate(value) === undefined, JSON.stringify({ source, value })).toBe(verdict);
      }
    }),
    { numRuns: RUNS },
  );
  expect(counts.refused).toBeLessThan(RUNS * 0.4);
  expect(counts.accepting).toBeGreaterThan(RUNS);
  expect(counts.rejecting).toBeGreaterThan(RUNS);
});

/** `undefined` where it is refused, by the translation or for its patterns and limits. */
function translatedOf(source: RandomSource): Validator | undefined {
  try {
    const { schemata } = toDraft7(new SourceDocument(source, "2020-12"), "/root");
    const schema = typeof schemata === "boolean" ? { allOf: [schemata] } : schemata;
    // The source may itself say something of types that no payload has, or no value there.
    const slips = /as the type is|every payload is an object/;
    expect(checkSchema(schema).warnings.filter(({ message }) => !slips.test(message))).toEqual([]);
    return compileSchema(schema);
  } catch (error) {
    if (error instanceof UnsupportedMessage || error instanceof EvregError) return undefined;
    throw error;
  }
}
