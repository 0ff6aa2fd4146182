/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import * as fc from "fast-check";
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

export const anyChange: fc.Arbitrary<Change> = fc.oneof(
  { weight: 4, arbitrary: edits },
  { weight: 1, arbitrary: layered(ofManyNames, ofOneName) },
  { weight: 1, arbitrary: layered(ofManyPlaces, ofOnePlace).map(inList) },
);
