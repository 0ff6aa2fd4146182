import { describe, expect, test } from "vitest";
import { lengthOf, rounds, someOf } from "../../faults/length.ts";
import { compare } from "../../../src/schema/compatibility/compare.ts";
import { pointerTo } from "../../../src/schema/pointers.ts";
import { githubTypes } from "../../support/github.ts";
import { randomFrom } from "./random-payloads.ts";
import type { Json } from "./random-schemas.ts";

/** A schema of an object somewhere in a document, with the pointer to it. */
interface Place {
  readonly pointer: string;
  readonly schema: Json;
}

const all = githubTypes();
const types = someOf(all, lengthOf("schema/compatibility/github")["event types"]);
/** How many had an optional property, and an enum of several values. */
const tried = { required: 0, enum: 0 };

/** Every schema that a payload of the document is held to, the definitions only once. */
function placesIn(document: Json): Place[] {
  const found = new Map<unknown, Place>();
  const visit = (schema: unknown, pointer: string): void => {
    if (typeof schema !== "object" || schema === null || found.has(schema)) return;
    const one = schema as Json;
    found.set(one, { pointer, schema: one });
    const reference = one["$ref"];
    if (typeof reference === "string") {
      const name = reference.slice("#/definitions/".length);
      visit((document["definitions"] as Json)[name], pointerTo("/definitions", name));
      return;
    }
    for (const keyword of ["properties", "patternProperties"]) {
      for (const [name, inner] of Object.entries((one[keyword] ?? {}) as Json)) {
        visit(inner, pointerTo(pointerTo(pointer, keyword), name));
      }
    }
    for (const keyword of ["allOf", "anyOf", "oneOf"]) {
      for (const [index, inner] of ((one[keyword] ?? []) as unknown[]).entries()) {
        visit(inner, `${pointer}/${keyword}/${index}`);
      }
    }
    // Of a list that is always empty the items are nobody's concern.
    if (one["maxItems"] !== 0) visit(one["items"], `${pointer}/items`);
    visit(one["additionalProperties"], `${pointer}/additionalProperties`);
  };
  visit(document, "");
  return [...found.values()];
}

/** A copy of the document, and the place that a random number picks among those that are of use. */
function picked(
  document: Json,
  random: () => number,
  isOfUse: (schema: Json) => boolean,
): { copy: Json; place: Place } {
  const copy = structuredClone(document);
  const places = placesIn(copy).filter(({ schema }) => isOfUse(schema));
  return { copy, place: places[Math.floor(random() * places.length)]! };
}

const isObject = ({ properties }: Json): boolean => properties !== undefined;
const optionalIn = ({ properties, required = [] }: Json): string[] =>
  Object.keys((properties ?? {}) as Json).filter((name) => !(required as string[]).includes(name));

const isList = ({ enum: values }: Json): boolean => Array.isArray(values) && values.length > 1;
const isText = ({ type, enum: values, const: only }: Json): boolean =>
  type === "string" && values === undefined && only === undefined;

describe.each(
  types.map((type) => ({ name: type.name, schemata: type.schemata as Json, index: all.indexOf(type) })),
)("$name", ({ schemata, index }) => {
  const random = randomFrom(index + 1);

  test("is compatible with itself", () => {
    expect(compare(schemata, structuredClone(schemata)).breaks).toEqual([]);
  });

  test("is compatible with an optional property added at any depth", () => {
    for (let round = 0; round < 2; round++) {
      const { copy, place } = picked(schemata, random, isObject);
      (place.schema["properties"] as Json)["added_later"] = { type: "string", maxLength: 10 };
      expect(compare(schemata, copy).breaks, place.pointer).toEqual([]);
    }
  });

  test("breaks producers with one more required property, at that place", () => {
    const hasOptional = (schema: Json): boolean => isObject(schema) && optionalIn(schema).length > 0;
    if (!placesIn(schemata).some(({ schema }) => hasOptional(schema))) return;
    tried.required++;
    const { copy, place } = picked(schemata, random, hasOptional);
    const [name] = optionalIn(place.schema);
    place.schema["required"] = [...((place.schema["required"] ?? []) as string[]), name];
    expectBreakAt(copy, `${place.pointer}/required`);
  });

  test("breaks producers with another type, at that place", () => {
    const { copy, place } = picked(schemata, random, isText);
    for (const keyword of Object.keys(place.schema)) delete place.schema[keyword];
    place.schema["type"] = "boolean";
    expectBreakAt(copy, `${place.pointer}/type`);
  });

  test("breaks producers with one enum value less, at that place", () => {
    if (!placesIn(schemata).some(({ schema }) => isList(schema))) return;
    tried.enum++;
    const { copy, place } = picked(schemata, random, isList);
    place.schema["enum"] = (place.schema["enum"] as unknown[]).slice(1);
    expectBreakAt(copy, `${place.pointer}/enum`);
  });

  /** Producers are refused there; nothing else is reported, and everything is proven. */
  function expectBreakAt(next: Json, pointer: string): void {
    const { breaks } = compare(schemata, next);
    const reported = JSON.stringify(breaks);
    expect(
      breaks.map(({ side }) => side),
      reported,
    ).toContain("producer");
    expect(new Set(breaks.map((one) => one.pointer)), reported).toEqual(new Set([pointer]));
    expect(new Set(breaks.map(({ certainty }) => certainty)), reported).toEqual(new Set(["proven"]));
  }
});

test("nearly every event type had a change to try", () => {
  expect(all).toHaveLength(58);
  expect(tried).toEqual({ required: rounds(3, 57), enum: rounds(3, 56) });
});
