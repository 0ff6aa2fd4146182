import type { Json } from "./random-schemas.ts";

/** A change that a row of docs/compatibility.md speaks of, and where its breaks are told. */
export type RuleCase = readonly [rule: string, old: Json, next: Json, pointer?: string];

export const text = { type: "string" };
export const whole = { type: "integer" };

export function object(properties: Json, rest: Json = {}): Json {
  return { type: "object", properties, ...rest };
}

/** A document with the schema at one property. */
export function at(schema: unknown): Json {
  return object({ p: schema });
}

/** The same change at a property, in items, deeper down and behind a reference; `place` is the end of the pointer. */
export function everywhere(rule: string, old: unknown, next: unknown, place?: string): RuleCase[] {
  const end = (start: string): string[] => (place === undefined ? [] : [start + place]);
  return [
    [rule, at(old), at(next), ...end("/properties/p")] as unknown as RuleCase,
    [
      rule,
      at({ type: "array", items: object({ q: old }) }),
      at({ type: "array", items: object({ q: next }) }),
      ...end("/properties/p/items/properties/q"),
    ] as unknown as RuleCase,
    [
      rule,
      { ...at({ $ref: "#/definitions/d" }), definitions: { d: old } },
      { ...at({ $ref: "#/definitions/d" }), definitions: { d: next } },
      ...end("/definitions/d"),
    ] as unknown as RuleCase,
  ];
}

/** A change in plain sight and the same the other way round. */
export function bothWays(
  narrowed: string,
  widened: string,
  wide: unknown,
  narrow: unknown,
  place?: string,
): RuleCase[] {
  const [first] = everywhere(narrowed, wide, narrow, place);
  const [second] = everywhere(widened, narrow, wide, place);
  return [first!, second!];
}
