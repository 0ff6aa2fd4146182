/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import * as fc from "fast-check";

type Schema = boolean | Record<string, unknown>;

/** A document with a schema of 2020-12 at `/root`, and two others that it refers to. */
export interface RandomSource {
  readonly root: Schema;
  readonly kept: { readonly first: Schema; readonly second: Schema };
}

const NAMES = ["a", "b", "c"];
const name = fc.constantFrom(...NAMES);
const names = fc.uniqueArray(name, { maxLength: 2 });
const small = fc.integer({ min: 0, max: 3 });

const leaf: fc.Arbitrary<Schema> = fc.oneof(
  fc.boolean(),
  fc.record(
    {
      type: fc.oneof(
        fc.constantFrom("string", "integer", "object", "array", "null"),
        fc.constant(["string", "null"]),
      ),
      enum: fc.constantFrom(["a", 1, null], [{ a: 1 }, [1]]),
      minimum: small,
      maxLength: small,
      pattern: fc.constantFrom("^a", "b$"),
      minItems: small,
      maxProperties: small,
      title: fc.constant("said, not checked"),
    },
    { requiredKeys: [], noNullPrototype: true },
  ),
  fc.record({ required: names }),
);

/** Keywords of which some few are drawn; any of them may stand beside a `$ref`. */
function schemas(depth: number, refs: readonly string[]): fc.Arbitrary<Schema> {
  if (depth === 0) return leaf;
  const inner = schemas(depth - 1, refs);
  const map = fc.dictionary(name, inner, { maxKeys: 2, noNullPrototype: true });
  const list = fc.array(inner, { minLength: 1, maxLength: 2 });
  const keywords: Record<string, fc.Arbitrary<unknown>> = {
    type: fc.constantFrom("object", "array", ["object", "array"]),
    properties: map,
    patternProperties: fc.dictionary(fc.constantFrom("^a", "b|c"), inner, {
      maxKeys: 1,
      noNullPrototype: true,
    }),
    additionalProperties: inner,
    propertyNames: fc.constantFrom({ maxLength: 1 }, { enum: ["a", "b"] }),
    items: inner,
    dependencies: fc.dictionary(name, fc.oneof(inner, names), { maxKeys: 2, noNullPrototype: true }),
    contains: inner,
    uniqueItems: fc.boolean(),
    allOf: list,
    anyOf: list,
    oneOf: list,
    not: inner,
    if: inner,
    then: inner,
    else: inner,
    required: names,
    const: fc.constantFrom({ $ref: "#/nowhere", a: 1 }, [1]),
  };
  if (refs.length > 0) keywords["$ref"] = fc.constantFrom(...refs);
  const drawn = fc
    .uniqueArray(fc.constantFrom(...Object.keys(keywords)), { minLength: 1, maxLength: 4 })
    .chain((picked) =>
      fc.record(Object.fromEntries(picked.map((one) => [one, keywords[one]!])), { noNullPrototype: true }),
    );
  return fc.oneof({ weight: 1, arbitrary: leaf }, { weight: 3, arbitrary: drawn });
}

export const randomSource: fc.Arbitrary<RandomSource> = fc.record(
  {
    root: schemas(3, ["#/kept/first", "#/kept/second"]),
    kept: fc.record(
      {
        // It leads back, but only for a value inside, so that no check goes round in circles.
        first: schemas(2, ["#/kept/second"]),
        second: fc.record({
          properties: fc.record({ a: fc.constant({ $ref: "#/kept/first" }) }),
          items: schemas(1, []),
        }),
      },
      { noNullPrototype: true },
    ),
  },
  { noNullPrototype: true },
);

const scalar = fc.constantFrom<unknown>("a", "b", "abab", "", 0, 1, 2.5, null, true);

export const randomPayload: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    scalar,
    fc.dictionary(fc.oneof(name, fc.constant("d")), tie("value"), { maxKeys: 4, noNullPrototype: true }),
    fc.array(tie("value"), { maxLength: 4 }),
  ),
})).value;
