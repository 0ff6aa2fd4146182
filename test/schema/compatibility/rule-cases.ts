import type { Json } from "./random-schemas.ts";

/** A change that a row of docs/compatibility.md speaks of, and where its breaks are told. */
export type RuleCase = readonly [rule: string, old: Json, next: Json, pointer?: string];

/** What a schema was and what it becomes; `place` is the end of the pointer to its breaks. */
export type Change = readonly [old: unknown, next: unknown, place?: string | undefined];

export const text = { type: "string" };
export const whole = { type: "integer" };

export function object(properties: Json, rest: Json = {}): Json {
  return { type: "object", properties, ...rest };
}

/** A document with the schema at one property. */
export function at(schema: unknown): Json {
  return object({ p: schema });
}

/** Changes of whole documents. */
export function rule(name: string, ...changes: readonly Change[]): RuleCase[] {
  return placed(name, changes, "", (schema) => schema as Json);
}

/** Changes of the schema at a property. */
export function atProperty(name: string, ...changes: readonly Change[]): RuleCase[] {
  return placed(name, changes, "/properties/p", at);
}

/** The same changes at a property, in items, deeper down and behind a reference. */
export function everywhere(name: string, ...changes: readonly Change[]): RuleCase[] {
  return [
    ...atProperty(name, ...changes),
    ...placed(name, changes, "/properties/p/items/properties/q", (schema) =>
      at({ type: "array", items: object({ q: schema }) }),
    ),
    ...placed(name, changes, "/definitions/d", (schema) => ({
      ...at({ $ref: "#/definitions/d" }),
      definitions: { d: schema },
    })),
  ];
}

/** Changes at a property that narrow it, and the same the other way round. */
export function bothWays(narrowed: string, widened: string, ...changes: readonly Change[]): RuleCase[] {
  const back = changes.map(([old, next, place]): Change => [next, old, place]);
  return [...atProperty(narrowed, ...changes), ...atProperty(widened, ...back)];
}

function placed(
  name: string,
  changes: readonly Change[],
  start: string,
  document: (schema: unknown) => Json,
): RuleCase[] {
  return changes.map(([old, next, place]) => {
    const [before, after] = [document(old), document(next)];
    return place === undefined ? [name, before, after] : [name, before, after, start + place];
  });
}
