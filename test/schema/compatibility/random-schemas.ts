/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import * as fc from "fast-check";
import { readSchema } from "../../../src/schema/read.ts";
import { isUsual } from "../../../src/schema/validate/ajv.ts";

export type Json = Record<string, unknown>;
export type Schema = Json | boolean;

/** Few names and values, so that schemas, edits and payloads meet. */
export const NAMES = ["a", "b", "c", "xa", "xb"];
export const TEXTS = ["", "a", "ab", "abc", "x", "x1", "A", "7", "2026-01-31", "ada@example.com", "0.0.0.0"];
const PATTERNS = ["^a", "b$", "^[a-z]+$", "^[a-z0-9]*$", "1"];
const NAME_PATTERNS = ["^x", "^x?a$", "b"];
const VALUES: unknown[] = [0, 1, 2, 1.5, -1, "a", "ab", "x1", true, false, null, [], [1], { a: 1 }, {}];

const name = fc.constantFrom(...NAMES);
const low = fc.integer({ min: -2, max: 1 });
const high = fc.integer({ min: 1, max: 5 });
const least = fc.integer({ min: 0, max: 2 });
const most = fc.integer({ min: 1, max: 4 });
const types = fc.constantFrom("string", "integer", "number", "boolean", "null", "object", "array");

/** A few of the keywords: with many of them at once hardly any value conforms. */
function few(always: Json, model: Record<string, fc.Arbitrary<unknown>>, atMost = 2): fc.Arbitrary<Json> {
  return fc
    .subarray(Object.keys(model), { maxLength: atMost })
    .chain((keywords) => fc.record(Object.fromEntries(keywords.map((keyword) => [keyword, model[keyword]!]))))
    .map((made) => Object.assign({}, always, made));
}

function some<T>(one: fc.Arbitrary<T>, minLength = 1, maxLength = 3): fc.Arbitrary<T[]> {
  return fc.array(one, { minLength, maxLength });
}

const assertions: fc.Arbitrary<Json> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: types }) },
  { weight: 2, arbitrary: fc.record({ type: fc.uniqueArray(types, { minLength: 1, maxLength: 3 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      enum: fc.uniqueArray(fc.constantFrom(...VALUES), { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ const: fc.constantFrom(...VALUES) }) },
  {
    weight: 3,
    arbitrary: fc.constantFrom("integer", "number").chain((type) =>
      few(
        { type },
        {
          minimum: low,
          maximum: high,
          exclusiveMinimum: low,
          exclusiveMaximum: high,
          multipleOf: fc.constantFrom(1, 2, 0.5, 3),
        },
      ),
    ),
  },
  {
    weight: 3,
    arbitrary: few(
      { type: "string" },
      {
        minLength: fc.integer({ min: 0, max: 2 }),
        maxLength: fc.integer({ min: 1, max: 4 }),
        pattern: fc.constantFrom(...PATTERNS),
        format: fc.constantFrom("email", "date", "ipv4"),
      },
    ),
  },
);

const { schema } = fc.letrec<{ schema: Schema; inner: Json; object: Json; list: Json; choice: Json }>(
  (tie) => ({
    schema: fc.oneof(
      { maxDepth: 3, depthIdentifier: "schema" },
      { weight: 7, arbitrary: assertions },
      { weight: 1, arbitrary: fc.constantFrom(true, true, true, {}, false) },
      {
        weight: 1,
        arbitrary: fc.constantFrom({ $ref: "#/definitions/d" }, { $ref: "#/definitions/e" }, { $ref: "#" }),
      },
      { weight: 4, arbitrary: tie("object") },
      { weight: 2, arbitrary: tie("list") },
      { weight: 3, arbitrary: tie("choice") },
    ),
    inner: fc.oneof(assertions, tie("object")),
    object: fc
      .tuple(
        fc.dictionary(name, tie("schema"), { maxKeys: 3 }),
        few(
          {},
          {
            type: fc.constant("object"),
            required: fc.uniqueArray(name, { minLength: 1, maxLength: 2 }),
            additionalProperties: fc.oneof(fc.constant(false), fc.constant(false), tie("schema")),
            patternProperties: fc.dictionary(fc.constantFrom(...NAME_PATTERNS), tie("schema"), {
              minKeys: 1,
              maxKeys: 2,
            }),
            propertyNames: fc.oneof(
              fc.record({ pattern: fc.constantFrom(...NAME_PATTERNS) }),
              fc.record({ maxLength: most }),
              fc.record({ enum: fc.constantFrom(["a", "b"], ["a"]) }),
            ),
            dependencies: fc.dictionary(
              name,
              fc.oneof(fc.uniqueArray(name, { maxLength: 2 }), tie("schema")),
              {
                minKeys: 1,
                maxKeys: 2,
              },
            ),
            minProperties: least,
            maxProperties: most,
          },
        ),
      )
      .map(([properties, rest]) => Object.assign({ properties }, rest)),
    list: few(
      { type: "array" },
      {
        items: fc.oneof(tie("schema"), some(tie("schema"), 1, 2)),
        additionalItems: tie("schema"),
        contains: tie("schema"),
        minItems: least,
        maxItems: most,
        uniqueItems: fc.constant(true),
      },
      3,
    ),
    choice: fc.oneof(
      fc.record({ allOf: some(tie("schema"), 1, 2) }),
      fc.record({ anyOf: some(tie("schema")) }),
      fc.record({ oneOf: some(tie("schema")) }),
      fc.record({ not: tie("schema") }),
      fc.record({ if: tie("schema"), then: tie("schema") }),
      fc.record({ if: tie("schema"), then: tie("schema"), else: tie("schema") }),
      fc.record({
        anyOf: some(tie("schema")),
        properties: fc.dictionary(name, tie("schema"), { maxKeys: 2 }),
      }),
    ),
  }),
);

export const anySchema: fc.Arbitrary<Schema> = schema;

/** What a document says at its root beside its properties; mostly nothing, or no payload would get past it. */
const atRoot: fc.Arbitrary<Json> = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  { weight: 3, arbitrary: fc.constant({ additionalProperties: false }) },
  { weight: 2, arbitrary: schema.map((one) => (typeof one === "object" && !("$ref" in one) ? one : {})) },
  { weight: 1, arbitrary: schema.map((one) => ({ allOf: [one] })) },
  { weight: 1, arbitrary: fc.record({ anyOf: some(schema, 2, 3) }) },
  { weight: 1, arbitrary: fc.record({ oneOf: some(schema, 2, 3) }) },
);

/** A document: an object at its root, with two definitions to refer to. */
export const anyDocument: fc.Arbitrary<Json> = fc
  .tuple(
    atRoot,
    schema,
    schema,
    fc.dictionary(name, schema, { minKeys: 2, maxKeys: 4 }),
    fc.uniqueArray(name, { maxLength: 1 }),
  )
  .map(([root, d, e, properties, required]) =>
    Object.assign({}, root, required.length > 0 ? { required } : {}, {
      properties: { ...properties, ...(root["properties"] as Json) },
      definitions: { d, e },
    }),
  );

const UNUSUAL = new Set(
  "$ref definitions allOf anyOf oneOf not if then else dependencies patternProperties propertyNames additionalItems contains uniqueItems multipleOf".split(
    " ",
  ),
);

function usualPart(one: unknown): unknown {
  if (Array.isArray(one)) return one.map(usualPart);
  if (typeof one !== "object" || one === null) return one;
  const kept = Object.entries(one).filter(([keyword]) => !UNUSUAL.has(keyword));
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, usualPart(value)]));
}

/** A document that evreg leaves to Ajv. */
export const usualDocument: fc.Arbitrary<Json> = anyDocument
  .map((document) => usualPart(document) as Json)
  .filter((document) => isUsual(readSchema(document)));
