/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import * as fc from "fast-check";
import { words } from "../../support/words.ts";
import { anyEdits, edited } from "./random-edits.ts";
import { anyDocument } from "./random-schemas.ts";
import type { Json, Schema } from "./random-schemas.ts";

export interface Change {
  readonly old: Json;
  readonly next: Json;
}

/** Edits anywhere in a document of any kind. */
const edits: fc.Arbitrary<Change> = fc
  .tuple(anyDocument, anyEdits)
  .map(([old, some]) => ({ old, next: edited(old, some) }));

// Beside them, changes where several schemas look at the same place, which edits hardly ever hit: one says something of
// all names or places and is changed, another says something of a single one and is not.

/** More than are held to each other one by one. */
const SO_MANY = { minLength: 5, maxLength: 9 };

const name = fc.constantFrom("a", "b");
const plain: fc.Arbitrary<Schema> = fc.constantFrom(
  { type: "string" },
  { type: "number" },
  { type: "integer" },
  { type: ["string", "null"] },
);
const object: fc.Arbitrary<Schema> = fc
  .dictionary(name, plain, { minKeys: 1, maxKeys: 2 })
  .map((properties) => ({ type: "object", properties }));

type Pair = readonly [before: Schema, after: Schema];
const held: fc.Arbitrary<Pair> = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(fc.constant({ type: "object" }), object) },
  { weight: 2, arbitrary: fc.tuple(object, object) },
  { weight: 2, arbitrary: fc.tuple(fc.constant(true), fc.constantFrom<Schema>(false, { type: "object" })) },
  { weight: 1, arbitrary: fc.tuple(fc.constant(true), plain) },
);
const both = ([before, after]: Pair): fc.Arbitrary<Pair> =>
  fc.constantFrom<Pair>([before, after], [before, after], [after, before]);

type Part = (inner: Schema) => Json;
/** More than are told apart. */
const fivePatterns = (inner: Schema): Json =>
  Object.fromEntries(["^c", "^d", "b$", "z$", "^q"].map((pattern) => [pattern, inner]));
const ofManyNames = fc.constantFrom<Part>(
  (inner) => ({ type: "object", additionalProperties: inner }),
  (inner) => ({ patternProperties: { "^x": inner } }),
  (inner) => ({ patternProperties: { "^x": inner }, additionalProperties: false }),
  (inner) => ({ patternProperties: fivePatterns(true), additionalProperties: inner }),
  (inner) => ({ patternProperties: fivePatterns({ type: "string" }), additionalProperties: inner }),
);
const ofManyPlaces = fc.constantFrom<Part>(
  (inner) => ({ type: "array", items: inner }),
  (inner) => ({ type: "array", contains: inner }),
);
const ofOneName = fc.constantFrom<Part>(
  (inner) => ({ properties: { a: inner } }),
  (inner) => ({ properties: { xa: inner } }),
  (inner) => ({ patternProperties: { a$: inner } }),
);
const ofOnePlace = fc.constantFrom<Part>(
  (inner) => ({ items: [inner] }),
  (inner) => ({ items: [true, inner] }),
  (inner) => ({ items: [true, true, inner] }),
);

/** Puts the two together, so that the second holds for some payloads, or for all. */
const beside = fc.constantFrom<(one: Json, other: Json) => Json>(
  (one, other) => ({ ...one, anyOf: [other, true] }),
  (one, other) => ({ ...one, anyOf: [other, { required: ["b"], maxItems: 2 }] }),
  (one, other) => ({ ...one, oneOf: [other, { not: other }] }),
  (one, other) => ({ ...one, if: { required: ["b"], maxItems: 2 }, then: other }),
  (one, other) => ({ ...one, if: { required: ["b"], maxItems: 2 }, else: other }),
  (one, other) => ({ ...one, allOf: [other] }),
);

function layered(many: fc.Arbitrary<Part>, one: fc.Arbitrary<Part>): fc.Arbitrary<Change> {
  return fc
    .tuple(many, one, held.chain(both), object, beside)
    .map(([main, other, [before, after], inner, put]) => ({
      old: put(main(before), other(inner)),
      next: put(main(after), other(inner)),
    }));
}

const inList = ({ old, next }: Change): Change => ({
  old: { type: "object", properties: { a: old } },
  next: { type: "object", properties: { a: next } },
});

// And changes of choices with so many branches that those that matter are looked up: by a member that tells most of them
// apart, or by the values themselves.

const TAGS: readonly unknown[] = ["a", "ab", 1, 0, null, true, [1], "x1"];
const tag = fc.constantFrom(...TAGS);
const tagSchema: fc.Arbitrary<Schema> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ const: tag }) },
  {
    weight: 2,
    arbitrary: fc.uniqueArray(tag, { minLength: 1, maxLength: 2 }).map((values) => ({ enum: values })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Schema>({ type: "null" }, { anyOf: [{ const: "a" }, { const: 1 }] }),
  },
  { weight: 1, arbitrary: fc.constantFrom<Schema>({ type: "string" }, true, { $ref: "#/definitions/d" }) },
);
/** Mostly an object that must have the tag; now and then one that need not have it, or another value than an object. */
const tagged: fc.Arbitrary<Schema> = fc
  .tuple(
    tagSchema,
    plain,
    fc.constantFrom<Json>({ type: "object" }, { type: "object" }, { type: "object" }, {}),
    fc.constantFrom<Json>({ required: ["a"] }, { required: ["a"] }, { required: ["a", "b"] }, {}),
    fc.constantFrom<Json>({}, {}, { additionalProperties: false }, { maxProperties: 2 }),
    fc.nat(5),
  )
  .map(([a, b, type, required, rest, form]) => {
    const properties = { a, b };
    if (form === 0)
      return {
        allOf: [
          { ...type, ...required },
          { properties, ...rest },
        ],
      };
    return Object.assign({}, type, required, { properties }, rest);
  });
const otherBranch = fc.constantFrom<Schema>(
  { type: "null" },
  { type: "array", items: { type: "integer" } },
  { $ref: "#/definitions/d" },
  { $ref: "#" },
  { type: "object" },
  false,
);
const valued: fc.Arbitrary<Schema> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ const: tag }) },
  { weight: 2, arbitrary: fc.record({ enum: fc.uniqueArray(tag, { minLength: 1, maxLength: 3 }) }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Schema>({ type: "boolean" }, { const: { a: 1 } }, { type: "integer" }),
  },
);
const someOf = (branch: fc.Arbitrary<Schema>): fc.Arbitrary<Schema[]> =>
  fc.array(fc.oneof({ weight: 6, arbitrary: branch }, { weight: 1, arbitrary: otherBranch }), SO_MANY);

type Rearrange = (list: readonly Schema[], at: number, branch: Schema) => Schema[];
const rearrange = fc.constantFrom<Rearrange>(
  (list, at, branch) => [...list.slice(0, at), branch, ...list.slice(at)],
  (list, _, branch) => [...list, branch],
  (list, at) => (list.length > 1 ? list.toSpliced(at, 1) : [...list]),
  (list, at, branch) => list.with(at, branch),
  (list, at) => [...list, list[at]!],
  (list) => list.toReversed(),
);
const keyword = fc.constantFrom("anyOf", "oneOf");
/** What such a choice becomes beside the same choice. */
const becomes: fc.Arbitrary<(old: string, next: Schema[]) => Schema> = fc.oneof(
  { weight: 6, arbitrary: fc.constant((old: string, next: Schema[]) => ({ [old]: next })) },
  { weight: 1, arbitrary: fc.constant((_: string, next: Schema[]) => ({ anyOf: next })) },
  { weight: 1, arbitrary: fc.constant((_: string, next: Schema[]) => ({ oneOf: next })) },
  { weight: 1, arbitrary: fc.constant((_: string, [first]: Schema[]) => first!) },
  { weight: 1, arbitrary: fc.constant(() => ({ enum: TAGS.slice(0, 5) })) },
);
function rearranged(branch: fc.Arbitrary<Schema>, isAtRoot: fc.Arbitrary<boolean>): fc.Arbitrary<Change> {
  return fc
    .tuple(someOf(branch), keyword, rearrange, rearrange, fc.nat(10_000), branch, becomes, plain, isAtRoot)
    .map(([list, old, first, second, where, another, become, d, atRoot]) => {
      const once = first(list, where % list.length, another);
      const next = where % 3 === 0 ? second(once, where % once.length, another) : once;
      const put = (inner: Schema): Json => {
        const document = atRoot && typeof inner === "object" ? inner : { properties: { p: inner } };
        return { ...document, definitions: { d } };
      };
      const [before, after] = [put({ [old]: list }), put(become(old, next))];
      return where % 2 === 0 ? { old: before, next: after } : { old: after, next: before };
    });
}

const choices: fc.Arbitrary<Change> = fc.oneof(
  rearranged(tagged, fc.boolean()),
  rearranged(valued, fc.constant(false)),
);

// And changes of one value whose limits and formats say the same in other words, or nearly.

const limit = fc.constantFrom(-(2 ** 31) - 1, -(2 ** 31), 0, 4, 5, 2 ** 31 - 1, 2 ** 31);
const number: fc.Arbitrary<Schema> = fc
  .record(
    {
      type: fc.constantFrom("integer", "number"),
      minimum: limit,
      maximum: limit,
      exclusiveMaximum: limit,
      multipleOf: fc.constantFrom(1, 0.5, 2),
      format: fc.constantFrom("int32", "int64"),
    },
    { requiredKeys: ["type"] },
  )
  .map((schema): Json => Object.assign({}, schema));
const formatted: fc.Arbitrary<Schema> = fc.record({
  type: fc.constant("string"),
  format: fc.constantFrom(
    ...words("date date-time iso-date-time time iso-time ipv4 hostname uri uri-reference uri-template"),
  ),
});
const scalars: fc.Arbitrary<Change> = fc
  .oneof(fc.tuple(number, number), fc.tuple(formatted, formatted))
  .map(([old, next]) => ({ old: { properties: { a: old } }, next: { properties: { a: next } } }));

export const anyChange: fc.Arbitrary<Change> = fc.oneof(
  { weight: 4, arbitrary: edits },
  { weight: 1, arbitrary: scalars },
  { weight: 2, arbitrary: choices },
  { weight: 1, arbitrary: layered(ofManyNames, ofOneName) },
  { weight: 1, arbitrary: layered(ofManyPlaces, ofOnePlace).map(inList) },
);
