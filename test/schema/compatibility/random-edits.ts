import * as fc from "fast-check";
import { words } from "../../support/words.ts";
import { anySchema, NAMES } from "./random-schemas.ts";
import type { Json, Schema } from "./random-schemas.ts";

/** One change somewhere in a document: where, what kind, and what it takes for it. */
export interface Edit {
  readonly where: number;
  readonly kind: number;
  readonly name: string;
  readonly schema: Schema;
  readonly number: number;
}

export const anyEdits: fc.Arbitrary<Edit[]> = fc.array(
  fc.record({
    where: fc.nat(10_000),
    kind: fc.nat(10_000),
    name: fc.constantFrom(...NAMES, "new1", "new2"),
    schema: anySchema,
    number: fc.integer({ min: 0, max: 3 }),
  }),
  { minLength: 1, maxLength: 3 },
);

/** The document with the edits made, one after the other; the document itself stays. */
export function edited(document: Json, edits: readonly Edit[]): Json {
  // Not `structuredClone`: what stands in two places is to be changed in one of them.
  const copy = JSON.parse(JSON.stringify(document)) as Json;
  for (const edit of edits) {
    const places = reachable(copy);
    const target = places[edit.where % places.length]!;
    KINDS[edit.kind % KINDS.length]!(target, { ...edit, schema: structuredClone(edit.schema) });
  }
  return copy;
}

type Kind = (target: Json, edit: Edit) => void;

/** Ways to say that nothing is allowed. */
const NOTHING: readonly Schema[] = [
  false,
  { not: {} },
  { allOf: [false] },
  { anyOf: [{ not: true }, false] },
];

const map = (target: Json, keyword: string): Json => (target[keyword] ??= {}) as Json;

const KINDS: readonly Kind[] = [
  (target, { name, schema }) => {
    map(target, "properties")[name] = schema;
  },
  (target, { name, schema }) => {
    map(target, "properties")[name] = schema;
  },
  (target, { name, number }) => {
    // A copy, as a later edit may be made inside of it.
    map(target, "properties")[name] = structuredClone(NOTHING[number]!);
  },
  (target, { name }) => {
    target["required"] = [...new Set([...((target["required"] ?? []) as string[]), name])];
  },
  (target) => {
    if (Array.isArray(target["required"])) target["required"] = target["required"].slice(1);
  },
  (target, { number }) => {
    const keywords = Object.keys(target).filter((keyword) => keyword !== "definitions");
    const keyword = keywords[number % Math.max(1, keywords.length)];
    if (keyword !== undefined) delete target[keyword];
  },
  (target, { schema }) => {
    if (typeof schema === "object") Object.assign(target, schema);
  },
  (target) => {
    target["additionalProperties"] = target["additionalProperties"] === false;
  },
  (target, { number }) => shift(target, number - 1),
  (target, { number }) => shift(target, number - 1),
  (target) => {
    if (Array.isArray(target["enum"]))
      target["enum"] = target["enum"].slice(0, Math.max(1, target["enum"].length - 1));
  },
  (target, { schema }) => {
    for (const keyword of ["anyOf", "oneOf", "allOf"]) {
      if (Array.isArray(target[keyword])) target[keyword] = [...(target[keyword] as unknown[]), schema];
    }
  },
  (target) => {
    for (const keyword of ["anyOf", "oneOf", "allOf"]) {
      const list = target[keyword];
      if (Array.isArray(list) && list.length > 1) target[keyword] = list.slice(1);
    }
  },
  (target, { name }) => {
    delete (target["properties"] as Json | undefined)?.[name];
  },
  (target) => {
    if (target["type"] === "integer") target["type"] = "number";
    else if (typeof target["type"] === "string") target["type"] = [target["type"], "null"];
  },
  (target) => {
    if (Array.isArray(target["type"])) target["type"] = target["type"][0];
    else if (target["type"] === "number") target["type"] = "integer";
  },
];

/** Moves a limit. */
function shift(target: Json, by: number): void {
  for (const [keyword, value] of Object.entries(target)) {
    if (typeof value !== "number" || keyword === "const" || keyword === "multipleOf") continue;
    const signed = keyword.endsWith("imum");
    target[keyword] = signed ? value + by : Math.max(0, value + by);
    return;
  }
}

const MAPS = ["properties", "patternProperties", "dependencies"];
const LISTS = ["allOf", "anyOf", "oneOf", "items"];
const ONES = words("additionalProperties propertyNames items additionalItems contains not if then else");

/** The schemas of a document that have a say, the definitions only where one refers to them. */
function reachable(document: Json): Json[] {
  const found = schemasIn(document);
  for (const { $ref: reference } of found) {
    if (typeof reference !== "string" || reference === "#") continue;
    const target = (document["definitions"] as Json)[reference.slice("#/definitions/".length)] as Json;
    if (!found.includes(target)) found.push(...schemasIn(target));
  }
  return found;
}

function schemasIn(schema: unknown): Json[] {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return [];
  const one = schema as Json;
  const inside = [
    ...MAPS.flatMap((keyword) => Object.values((one[keyword] ?? {}) as Json)),
    ...LISTS.flatMap((keyword) => (Array.isArray(one[keyword]) ? (one[keyword] as unknown[]) : [])),
    ...ONES.map((keyword) => one[keyword]),
  ];
  return [one, ...inside.flatMap(schemasIn)];
}
